// SPDX-License-Identifier: Apache-2.0
// Force-included before a test of threads (-include), it makes launch<mesh>(f) run f over processes that MPI connects, of which there may be
// more than the mesh has ranks.
// Law: a case sees what it sees of threads. f runs in every process once for each rank, in turns: in turn t process p is rank p - t modulo
// the number of processes, or idle where that is no rank. So the ranks of a turn are different processes, and what f leaves in
// memory outside of it is whole behind the last turn. In place of the files of test/support/files.hpp each turn finds what the first found.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace test::processes {

inline MPI_Comm all() { return MPI_COMM_WORLD; }
inline int number() {
  int r = 0;
  MPI_Comm_rank(all(), &r);
  return r;
}
inline int count() {
  int n = 0;
  MPI_Comm_size(all(), &n);
  return n;
}

// Whom the library takes for MPI's world: the processes of a turn, in the order of its ranks.
inline MPI_Comm& of_turn() {
  static MPI_Comm c = MPI_COMM_NULL;
  return c;
}
inline MPI_Comm world() { return of_turn() == MPI_COMM_NULL ? all() : of_turn(); }

// What the case that is under way has launched: the largest mesh, and how often. See test/mpi/cases/main.cpp.
struct launches {
  int largest = 0, made = 0;
};
inline launches& of_case() {
  static launches l;
  return l;
}
// A case's mesh has more ranks than there are processes: the case runs under so many.
struct too_few : std::runtime_error {
  too_few() : std::runtime_error("more processes are needed") {}
};

// A folder that all processes name alike, made by the first: see test::folder.
inline std::set<std::string>& folders() {
  static std::set<std::string> f;
  return f;
}
inline void first_alone(const auto& f) {
  MPI_Barrier(all());
  if (number() == 0) f();
  MPI_Barrier(all());
}
inline std::string made_folder(std::string name) {
  int size = static_cast<int>(name.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, all());
  name.resize(static_cast<std::size_t>(size));
  MPI_Bcast(name.data(), size, MPI_CHAR, 0, all());
  folders().insert(name);
  return name;
}
inline void remove_folder(const std::string& name) {
  folders().erase(name);
  first_alone([&] {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
    std::filesystem::remove_all(name + "-before", ignored);
  });
}
inline void copy_folders(const char* from, const char* to) {
  if (folders().empty()) return;
  first_alone([&] {
    for (const std::string& f : folders()) {
      std::filesystem::remove_all(f + to);
      std::filesystem::copy(f + from, f + to, std::filesystem::copy_options::recursive);
    }
  });
}

// A launch that fails is the last: MPI has no way back, and processes that are idle would wait for the others.
[[noreturn]] inline void end_all(const char* why) {
  std::printf("\nprocess %d: a launch has failed: %s\n", number(), why);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // so that others say it, too
  MPI_Abort(all(), 1);
  std::abort();
}

// Calls run() as each rank of a mesh of that many.
inline void in_turns(int ranks, const auto& run) {
  const int n = count(), me = number();
  of_case().largest = ranks > of_case().largest ? ranks : of_case().largest;
  ++of_case().made;
  if (ranks > n) throw too_few();
  const int turns = ranks == 1 && folders().empty() ? 1 : n;  // alone all may run at once
  copy_folders("", "-before");
  for (int t = 0; t < turns; ++t) {
    const int rank = turns == 1 ? 0 : (me - t + n) % n;
    if (t > 0) copy_folders("-before", "");
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_split(all(), turns == 1 ? me : rank < ranks ? 0 : MPI_UNDEFINED, rank, &mine);
    if (mine != MPI_COMM_NULL) {
      MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
      of_turn() = mine;
      try {
        run();
      } catch (const std::exception& e) {
        end_all(e.what());
      } catch (...) {
        end_all("a requirement of the test");
      }
      of_turn() = MPI_COMM_NULL;
      MPI_Comm_free(&mine);
    }
  }
}

}  // namespace test::processes

#undef MPI_COMM_WORLD
#define MPI_COMM_WORLD (test::processes::world())

#include <shardwise/runtime/mpi/mpi.hpp>

#define thread_rank mpi_rank  // whose executor and tensors are meant where none is said
#include <shardwise/shardwise.hpp>

namespace shardwise::inline v0_1 {

template <class Mesh, class F>
void launch_by_processes(F&& f) {
  if constexpr (!detail::is_mesh<Mesh>) launch<Mesh>(f);  // says what is wrong
  else test::processes::in_turns(Mesh::size, [&] { launch_mpi<Mesh>(f); });
}

}  // namespace shardwise::inline v0_1

#define launch launch_by_processes

// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that MPI connects: launch_mpi. Link shardwise::mpi; shardwise.hpp is included by the program.
#pragma once

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/mpi/collectives.hpp>
#include <shardwise/runtime/mpi/rank.hpp>
#include <shardwise/runtime/threads/collectives.hpp>
#include <shardwise/runtime/with_rank.hpp>

namespace shardwise::inline v0_1 {

namespace mpi {

inline void say(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
}

// Throws where MPI's world has not `wanted` processes; `needs` says what needs them, and `as_many` how many to start.
inline void check_processes(int wanted, const std::string& needs, const char* as_many,
                            const launched_by& by = by_launch_mpi) {
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (size == wanted) return;
  const runtime::starter* const l = runtime::find_starter();
  const int started = l && std::getenv(l->size) ? runtime::number_in(*l, l->size) : 0;
  throw std::runtime_error(std::string("shardwise: ") + by.name + ": " + needs + "; MPI knows " + std::to_string(size) +
                           (size == 1 ? " process" : " processes") +
                           (started > 1 && size == 1
                                ? std::string(", and ") + l->started_by + " has started " + std::to_string(started) +
                                      ", which this MPI does not connect; start them with its own mpirun"
                                : std::string("; start ") + as_many + ": mpirun -n " + std::to_string(wanted)));
}

// All ranks know that the program has no mesh for them: the first one says it before any of them ends.
template <class Choice>
int refuse_size(const runtime::process_place& p, const launched_by& by) {
  start(by);
  try {
    runtime::with_mesh<Choice>(p.size, p.said, [&]<class M>() {});
  } catch (const std::exception& e) {
    if (p.rank == 0) say(e.what());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return 1;
}

// Of a rank: Layout says which process runs it, and as which of its threads.
template <class Mesh, class Layout>
seat seat_of(int rank) {
  seat s;
  s.rank = rank;
  s.size = Mesh::size;
  for (int r = 0; r < Mesh::size; ++r) {
    s.process.push_back(Layout::process_of(r));
    s.thread.push_back(Layout::thread_of(r));
  }
  for (int a = 0; a < Mesh::axes; ++a) {
    std::vector<int>& group = s.groups.emplace_back();
    for (int k = 0; k < Mesh::sizes[static_cast<unsigned>(a)]; ++k) group.push_back(Mesh::group_member(rank, a, k));
    s.numbers.push_back(threads::world<Mesh>::group_of(rank, a));
  }
  return s;
}
struct a_process_each {
  static int process_of(int rank) { return rank; }
  static int thread_of(int) { return 0; }
};

inline std::unique_ptr<world> make_world(std::shared_ptr<line> shared, const seat& s, int host, const mpi_options& options,
                                         const launched_by& by = by_launch_mpi) {
  if (!(options.timeout_seconds > 0))
    throw std::invalid_argument(std::string("shardwise: ") + by.name + ": timeout_seconds is " +
                                std::to_string(options.timeout_seconds) +
                                "; give the seconds that a rank may wait for others, more than 0");
  return std::make_unique<world>(std::move(shared), s, host, options);
}
inline int process_number() {
  int me = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &me), "MPI_Comm_rank");
  return me;
}

// This process among those of its host, which share its cores. Collective.
struct host_place {
  int number = 0, processes = 1;
};
inline host_place place_on_host() {
  MPI_Comm host = MPI_COMM_NULL;
  host_place p;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  MPI_Comm_rank(host, &p.number);
  MPI_Comm_size(host, &p.processes);
  MPI_Comm_free(&host);
  return p;
}

// Runs body(), in which the rank lives, and comes to an end with the other ranks. Returns nothing where all is well, else what failed; of
// the rank that reports, its exception is stored.
template <class Body>
world::verdict run_rank(const Body& body, world& w, std::exception_ptr& own) {
  try {
    body();
    w.finish();
    return {};
  } catch (const rank_failed&) {
    // the rank that caused it reports; or this one's stream, which has told the others already
  } catch (...) {
    own = runtime::with_rank(std::current_exception(), w.rank());
    fail(w, own);
  }
  return w.end_failed();
}

// Runs body(world, place on this host), in which the one rank lives that this process is. `says` is told what failed, where this rank reports
// it, before the other ranks end.
template <class Mesh, class Body, class Says>
void run_process(const Body& body, const mpi_options& options, const Says& says, const launched_by& by = by_launch_mpi) {
  start(by);
  check_processes(Mesh::size, "the mesh " + runtime::mesh_sizes<Mesh>() + " has " + std::to_string(Mesh::size) + " ranks",
                  "as many as the mesh has ranks", by);
  const host_place host = place_on_host();
  const int me = process_number();
  std::unique_ptr<world> w =
      make_world(std::make_shared<line>(), seat_of<Mesh, a_process_each>(me), host.processes, options, by);
  std::exception_ptr own;
  const world::verdict v = run_rank([&] { body(*w, host); }, *w, own);
  if (v.rank < 0) {
    w->free();
    return;
  }
  world* const kept = w.release();  // MPI may still use it
  if (v.is_reporter) {
    says(v.text, v.silent);
    if (v.silent) kept->abort_all();
    kept->report_done();
    if (own) std::rethrow_exception(own);
    throw std::runtime_error(v.text);
  }
  throw rank_failed(v.rank, v.text);
}
template <class Mesh, class F, class Says>
void launch_rank(F& f, const mpi_options& options, const Says& says) {
  run_process<Mesh>(
      [&](world& w, const host_place& host) {
        mpi_rank<Mesh> rank(w, host.processes);
        f(rank);
      },
      options, says);
}

// Of a main: process.operator()<Mesh>(says), the run of this process's rank, if a launcher has started several, or as many as a mesh has
// ranks; else alone().
template <class Choice, class Alone, class Process>
int launch_main(int argc, char** argv, const Alone& alone, const Process& process, const launched_by& by = by_launch_mpi) {
  bool said = false;
  try {
    const runtime::launch_arguments a = runtime::launch_arguments_of(argc, argv);
    const runtime::process_place p = a.ranks < 0 ? runtime::place_of_process(a) : runtime::process_place{};
    const bool processes = p.by && (p.size > 1 || runtime::has_mesh_of<Choice>(p.size));
    if (!processes) return alone();
    if (!runtime::has_mesh_of<Choice>(p.size)) return refuse_size<Choice>(p, by);
    runtime::with_mesh<Choice>(p.size, p.said, [&]<class M>() {
      process.template operator()<M>([&](const std::string& text, bool) {
        say(text);
        said = true;
      });
    });
    return 0;
  } catch (const rank_failed&) {  // its rank says it
  } catch (const std::exception& e) {
    if (!said) say(e.what());
  }
  return 1;
}

}  // namespace mpi

// Runs f(rank) for the one rank that this process is, and returns when the functions of all ranks have returned. If one throws, returns
// while others wait for it, or does not come within options.timeout_seconds, all are released from their collectives, and this throws
// on every rank: there the exception, on the others rank_failed, with its text. A rank that does not answer even then is ended by
// MPI_Abort, and all others with it, after the text has been written to stderr. A process that is killed ends the others by its
// launcher, or by their time-out. Nothing can be launched after a failure. MPI is initialised if the program has not done it; f calls
// MPI itself only where the program has, with MPI_THREAD_MULTIPLE.
template <class Mesh, class F>
void launch_mpi(F&& f, const mpi_options& options = {}) {
  if constexpr (detail::can_launch<Mesh, mpi_rank, F>()) {
    static_assert(checked_host_rank<mpi_rank<Mesh>>::ok);
    mpi::launch_rank<Mesh>(f, options, [](const std::string& text, bool silent) {
      if (silent) mpi::say(text);
    });
  }
}

// The same of a main, whose result it gives: 0, or 1 where the run has failed, which one rank alone says on stderr. Ranks are processes
// if a launcher has started several, or as many as the mesh has ranks; else threads, as many as --ranks says. Mesh may be a
// mesh_choice; f takes ranks of either kind.
template <class Mesh, class F>
int launch_mpi(int argc, char** argv, F&& f, const mpi_options& options = {}) {
  if constexpr (!runtime::choice_of<Mesh>::good) {
    launch_mpi<Mesh>(static_cast<F&&>(f), options);  // says what is wrong
    return 1;
  } else {
    return mpi::launch_main<Mesh>(
        argc, argv, [&] { return launch<Mesh>(argc, argv, f); },
        [&]<class M>(const auto& says) {
          if constexpr (detail::can_launch<M, mpi_rank, F>()) mpi::launch_rank<M>(f, options, says);
        });
  }
}

}  // namespace shardwise::inline v0_1

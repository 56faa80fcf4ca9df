// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of several processes that MPI connects: launch_mpi<mesh, within_process<axes...>>. Link shardwise::mpi; shardwise.hpp is
// included by the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/mpi/hybrid_collectives.hpp>
#include <shardwise/runtime/mpi/mpi.hpp>

namespace shardwise::inline v0_1 {

namespace mpi {

// "2 (4 x 2, 4 threads each)"
template <class Mesh, class Within>
std::string processes_text() {
  using placed = processes::layout_of<Mesh, Within>;
  return std::to_string(placed::processes) + " (" + runtime::mesh_sizes<Mesh>() + ", " + std::to_string(placed::threads) +
         (placed::threads == 1 ? " thread each)" : " threads each)");
}

// Runs the ranks of this process, each in a thread of its own. `says` is told what failed, where a rank of this process reports it.
template <class Mesh, class Within, class F, class Says>
void launch_process(F& f, const mpi_options& options, const Says& says) {
  using placed = processes::layout_of<Mesh, Within>;
  start();
  check_processes(placed::processes,
                  "the mesh " + runtime::mesh_sizes<Mesh>() + " has " + std::to_string(Mesh::size) + " ranks, " +
                      std::to_string(placed::threads) + " of them in each process",
                  "as many as the axes between processes have ranks");
  const int host = place_on_host().processes * placed::threads, process = process_number();
  auto groups = std::make_unique<process_groups<Mesh, Within>>();
  std::unique_ptr<world> w[placed::threads];
  world::verdict found[placed::threads];
  std::exception_ptr own[placed::threads];
  {
    const auto shared = std::make_shared<line>();
    for (int t = 0; t < placed::threads; ++t)
      w[t] = make_world(shared, seat_of<Mesh, placed>(placed::rank_of(process, t)), host, options);
  }
  // Of a rank that reports, before the others end: what it says, and the end of all where somebody does not answer.
  const auto report = [&](int t) {
    if (!found[t].is_reporter) return;
    says(found[t].text, found[t].silent);
    if (found[t].silent) w[t]->abort_all();
    w[t]->report_done();
  };
  auto body = [&](int t) {
    found[t] = run_rank(
        [&] {
          hybrid_rank<Mesh, Within> rank(*w[t], *groups, host);
          f(rank);
        },
        *w[t], own[t]);
    report(t);
  };
  threads::run_threads<placed::threads>(body, [&](std::exception_ptr e) {
    found[0] = run_rank([&] { std::rethrow_exception(e); }, *w[0], own[0]);
    report(0);
  });
  bool failed = false;
  for (const world::verdict& v : found) failed = failed || v.rank >= 0;
  if (!failed) {
    for (auto& each : w) each->free();
    return;
  }
  for (auto& each : w) (void)each.release();  // MPI may still use them
  for (int t = 0; t < placed::threads; ++t)
    if (found[t].is_reporter) {
      if (own[t]) std::rethrow_exception(own[t]);
      throw std::runtime_error(found[t].text);
    }
  int t = 0;
  while (found[t].rank < 0) ++t;
  throw rank_failed(found[t].rank, found[t].text);
}

// The number of processes that a program was built for, as with_mesh has it of ranks.
template <class Choice, class Within, class F>
bool with_processes(int processes, const char* said, std::string& why, const F& f) {
  bool done = false;
  std::string built;
  runtime::choice_of<Choice>::each([&]<class M>() {
    using within = typename processes::layouts<Choice, Within>::template within<M>;
    if (!done && processes::layout_of<M, within>::processes == processes) {
      done = true;
      f.template operator()<M, within>();
    }
    built += (built.empty() ? "" : " or ") + processes_text<M, within>();
  });
  if (!done)
    why = "shardwise: there are " + std::to_string(processes) + " processes by " + said +
          ", and this program was built for " + built +
          "; start it with such a number, or add a mesh for as many processes to its mesh_choice";
  return done;
}

}  // namespace mpi

// As launch_mpi<Mesh>, with several ranks in each process: ranks that differ on the axes of Within alone are threads of one, which exchange
// through its memory; along the other axes MPI connects processes. There are as many processes as these axes have ranks. What a
// program computes, its bytes and its bits are those of threads, and a failure of a rank ends all of them as there. f is run once for each
// rank of this process, each in a thread of its own; it calls MPI itself only where the program has initialised it with MPI_THREAD_MULTIPLE.
// The library's own calls are made one at a time: of MPI it asks for MPI_THREAD_SERIALIZED.
template <class Mesh, class Within, class F>
  requires processes::is_within_process<Within>
void launch_mpi(F&& f, const mpi_options& options = {}) {
  if constexpr (!detail::is_mesh<Mesh>) {
    launch_mpi<Mesh>(static_cast<F&&>(f), options);  // says what is wrong
  } else if constexpr (processes::layouts<Mesh, Within>::good) {
    if constexpr (detail::can_launch<Mesh, mpi::hybrid<Within>::template rank, F>()) {
      static_assert(checked_host_rank<hybrid_rank<Mesh, Within>>::ok);
      mpi::launch_process<Mesh, Within>(f, options, [](const std::string& text, bool silent) {
        if (silent) mpi::say(text);
      });
    }
  }
}

// The same of a main, whose result it gives, as launch_mpi<Mesh>(argc, argv, f): where nothing has started several processes and the program
// has no mesh for one, all ranks are threads of this one. The meshes of a mesh_choice differ in their number of processes.
template <class Mesh, class Within, class F>
  requires processes::is_within_process<Within>
int launch_mpi(int argc, char** argv, F&& f, const mpi_options& options = {}) {
  if constexpr (!runtime::choice_of<Mesh>::good) {
    launch_mpi<Mesh>(static_cast<F&&>(f), options);  // says what is wrong
  } else if constexpr (processes::layouts<Mesh, Within>::good) {
    bool said = false;
    try {
      const runtime::launch_arguments a = runtime::launch_arguments_of(argc, argv);
      const runtime::process_place p = a.ranks < 0 ? runtime::place_of_process(a) : runtime::process_place{};
      std::string why;
      const bool known = mpi::with_processes<Mesh, Within>(p.size, p.said ? p.said : "", why, []<class M, class W>() {});
      if (!p.by || (p.size == 1 && !known)) return launch<Mesh>(argc, argv, f);
      if (!known) {
        mpi::start();
        if (p.rank == 0) mpi::say(why);
        MPI_Barrier(MPI_COMM_WORLD);
        return 1;
      }
      mpi::with_processes<Mesh, Within>(p.size, p.said, why, [&]<class M, class W>() {
        if constexpr (detail::can_launch<M, mpi::hybrid<W>::template rank, F>())
          mpi::launch_process<M, W>(f, options, [&](const std::string& text, bool) {
            mpi::say(text);
            said = true;
          });
      });
      return 0;
    } catch (const rank_failed&) {  // its rank says it
    } catch (const std::exception& e) {
      if (!said) mpi::say(e.what());
    }
  }
  return 1;
}

}  // namespace shardwise::inline v0_1

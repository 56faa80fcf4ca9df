// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a run are, by --backend: host threads, processes of mpirun, GPUs.
#pragma once

#include <iostream>
#include <string>
#include <string_view>
#include <type_traits>

#include <shardwise/shardwise.hpp>

#if defined(TRAIN_TEXT_MPI)
#include <shardwise/runtime/mpi/mpi.hpp>
#endif

#include "options.hpp"
#include "plans.hpp"

namespace train_text {

// How many ranks there are, what launches them and plans their memory, and what the model computes in.
struct on_threads {
  using backend = sw::host_backend;
#if defined(TRAIN_TEXT_RANKS)
  static constexpr int ranks = TRAIN_TEXT_RANKS;  // for tests: 1, 2 or 4
#else
  static constexpr int ranks = host_ranks;
#endif
  static constexpr std::string_view precision = "float32";
  template <class Plan>
  using plan = Plan;
  template <class Mesh, class F>
  static void launch(F&& f) {
    sw::launch<Mesh>(f);
  }
};
#if defined(TRAIN_TEXT_MPI)
struct on_processes : on_threads {
  template <class Mesh, class F>
  static void launch(F&& f) {
    sw::launch_mpi<Mesh>(f);
  }
};
#endif
#if defined(TRAIN_TEXT_CUDA)
template <class Plan>
struct in_bf16;
template <class... Entries>
struct in_bf16<sw::plan<Entries...>> {
  using type = sw::plan<Entries..., sw::mixed<sw::bf16>>;
};
struct on_gpus {
  using backend = sw::cuda_backend;
  static constexpr int ranks = TRAIN_TEXT_GPUS;
  static_assert(ranks == 1 || ranks == 2 || ranks == 4 || ranks == 8, "TRAIN_TEXT_GPUS is 1, 2, 4 or 8");
#if defined(TRAIN_TEXT_FLOAT32)
  static constexpr std::string_view precision = "float32";
  template <class Plan>
  using plan = Plan;
#else
  static constexpr std::string_view precision = "bf16";
  template <class Plan>
  using plan = typename in_bf16<Plan>::type;
#endif
  template <class Mesh, class F>
  static void launch(F&& f) {
    sw::launch_cuda<Mesh>(f);
  }
};
#endif

// Whether this process is not the one that shows and writes the results of a run of several.
template <class Place>
bool is_silent() {
#if defined(TRAIN_TEXT_MPI)
  if constexpr (std::is_same_v<Place, on_processes>) return sw::runtime::place_of_process().rank != 0;
#endif
  return false;
}

template <class Place>
void check_precision(const options& o) {
  if (o.precision.empty() || o.precision == Place::precision) return;
  throw usage_error("--precision " + o.precision + " is given, and this program computes in " +
                    std::string(Place::precision) +
                    (std::is_base_of_v<on_threads, Place>
                         ? " on hosts."
                         : "; ./quickstart train --backend cuda --precision " + o.precision + " builds the other one."));
}

// run(place) of the backend that is asked for; throws usage_error where this build has none or it does not fit.
template <class Run>
int at_place(const options& o, Run&& run) {
  if (o.backend == "threads") {
    check_precision<on_threads>(o);
    return run(on_threads{});
  }
  if (o.backend == "mpi") {
#if defined(TRAIN_TEXT_MPI)
    check_precision<on_processes>(o);
    return run(on_processes{});
#else
    throw usage_error(
        "this build has no MPI; for --backend mpi configure with -DSHARDWISE_WITH_MPI=ON and start build/.../train_text_mpi "
        "with mpirun, or ./quickstart train --backend mpi.");
#endif
  }
#if defined(TRAIN_TEXT_CUDA)
  check_precision<on_gpus>(o);
  if (const int found = sw::cuda::device_count(); !o.plan_only && found < on_gpus::ranks)
    throw usage_error("this program is built for " + std::to_string(on_gpus::ranks) + " GPUs, and " + std::to_string(found) +
                      " are found; ./quickstart train --backend cuda builds it for those that are there.");
  return run(on_gpus{});
#else
  throw usage_error(
      "this build runs on host threads only; for --backend cuda build the preset cuda and run "
      "build/cuda/examples/train_text_cuda, or ./quickstart train --backend cuda.");
#endif
}

}  // namespace train_text

// SPDX-License-Identifier: Apache-2.0
// Where a test's ranks run: threads of this process, or, in CUDA sources that say so, one GPU each.
#pragma once

#include <shardwise/shardwise.hpp>
#if defined(SHARDWISE_TEST_DEVICES)
#include <shardwise/cuda.cuh>

#include <cstdio>
#endif

namespace test {

namespace sw = shardwise;

struct on_threads {
  using backend = sw::host_backend;
  static constexpr sw::executor_checks checks = sw::executor_checks::poison;  // of an executor that a test makes
  static constexpr bool has(int) { return true; }
  template <class Mesh, class F>
  static void launch(F&& f) {
    sw::launch<Mesh>(f);
  }
};

#if defined(SHARDWISE_TEST_DEVICES)
struct on_devices {
  using backend = sw::cuda_backend;
  static constexpr sw::executor_checks checks = sw::executor_checks::none;  // a device's executor has no poison
  // Whether this process sees that many GPUs; says so where it does not.
  static bool has(int wanted) {
    const int there = sw::cuda::device_count();
    if (there < wanted) std::printf("skipped: %d GPU%s found, %d needed\n", there, there == 1 ? "" : "s", wanted);
    return there >= wanted;
  }
  template <class Mesh, class F>
  static void launch(F&& f) {
    sw::launch_cuda<Mesh>(f);
  }
};
using place = on_devices;
#else
using place = on_threads;
#endif

}  // namespace test

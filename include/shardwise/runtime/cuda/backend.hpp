// SPDX-License-Identifier: Apache-2.0
// cuda_backend: how much scratch a program's kernels and collectives need on a device; free of CUDA headers, so that a
// program for devices is planned, measured and checked by any compiler.
#pragma once

#include <cstdint>

#include <type_traits>

#include <shardwise/graph/graph.hpp>
#include <shardwise/propagation/scratch.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/pass/memory/scratch.hpp>
#include <shardwise/runtime/cuda/collective_workspace.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/diagnose.hpp>

namespace shardwise::inline v0_1 {

// Kernels and collectives run at the same time, so each kind has scratch of its own: [kernels][collectives].
struct cuda_backend {
  struct scratch {
    std::int64_t compute = 0, communication = 0;
    constexpr std::int64_t total() const { return passes::align_up(compute) + passes::align_up(communication); }
  };

  template <class Graph>
  static constexpr scratch scratch_of(const Graph& g) {
    scratch most;
    most.compute = passes::kernel_scratch<passes::kernel_place::device>(g);
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != op_code::redistribute) continue;
      const spec& x = g.specs[g.nodes[n.in[0]].spec];
      const std::int64_t need =
          device_collective_workspace_bytes(n, x, g.specs[n.spec], operations::largest_block(x).extent);
      if (need > most.communication) most.communication = need;
    }
    return most;
  }

  template <class Source>
  static constexpr std::int64_t workspace_bytes() {
    return scratch_of(Source::value).total();
  }
};

// A program that a rank on a device can run.
template <class Step>
struct checked_device_step {
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise<(std::is_same_v<typename Step::backend, cuda_backend> ? problem::none : problem::backend_not_cuda),
                      typename Step::backend>::ok);
#endif
  static constexpr bool ok = true;
};

}  // namespace shardwise::inline v0_1

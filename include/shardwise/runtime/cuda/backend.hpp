// SPDX-License-Identifier: Apache-2.0
// cuda_backend: how much scratch a program's kernels and collectives need on a device; free of CUDA headers, so that a
// program for devices is planned, measured and checked by any compiler.
#pragma once

#include <cstdint>

#include <type_traits>

#include <shardwise/graph/graph.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/runtime/cuda/collective_workspace.hpp>
#include <shardwise/runtime/cuda/workspace.hpp>
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
    constexpr int origin[max_axes]{};
    std::int64_t ext[Graph::spec_capacity][max_rank]{};
    for (int s = 0; s < g.spec_count; ++s)
      for (int d = 0; d < g.specs[s].rank; ++d) ext[s][d] = local_interval(g.specs[s], d, origin).size;
    scratch most;
    for (int i = 0; i < g.node_count; ++i) {
      const op_code op = g.nodes[i].op;
      if (op != op_code::redistribute && !runtime::needs_device_workspace(op)) continue;
      const node n = g.nodes[i];
      const int x = g.nodes[n.in[0]].spec, y = g.nodes[n.in[op == op_code::einsum ? 1 : 0]].spec;
      const std::int64_t axis = n.op == op_code::redistribute ? attributes_of<redistribute_attributes>(n.a).axis : 0;
      const bool talks =
          n.op == op_code::redistribute &&
          communicates(transition_of(g.specs[x].place[axis], g.specs[n.spec].place[axis], g.specs[x].axis_size[axis]));
      const std::int64_t need =
          talks ? device_collective_workspace_bytes(n, g.specs[x], g.specs[n.spec], ext[x])
                : runtime::device_workspace_bytes(n.op, n.a, g.specs[x], g.specs[y], g.specs[n.spec], ext[x], ext[y]);
      std::int64_t& top = talks ? most.communication : most.compute;
      if (need > top) top = need;
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

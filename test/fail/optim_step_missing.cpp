// SPDX-License-Identifier: Apache-2.0
// A fused update reads counters that nothing advances.
// expect: optimizer block: Cannot find step node (foreach_add) for the optimizer node

#include "fail_step.hpp"

struct uncounted {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; i < g.node_count; ++i) {
      sw::node& n = g.nodes[i];
      if (n.op == sw::op_code::adam) n.in[4] = g.nodes[n.in[4]].in[0];
    }
    return {};
  }
};
#ifdef SHARDWISE_FAIL
using parts = step<sw::fused_optimizer, uncounted, sw::split_fused_optimizer<0, 1>>;
#else
using parts = step<sw::fused_optimizer, sw::split_fused_optimizer<0, 1>, uncounted>;
#endif
constexpr int nodes = parts::program.node_count;

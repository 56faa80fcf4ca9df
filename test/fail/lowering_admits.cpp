// SPDX-License-Identifier: Apache-2.0
// A predicate of partial_lower admits an update.
// expect: the predicate of supported operations admits a collective, a wait, an update or a leaf

#include "fail_step.hpp"

#include <shardwise/pass/fuse/partial_lower.hpp>

struct supported {
  template <class Graph>
  static constexpr bool holds(const Graph& g, int i) {
#ifdef SHARDWISE_FAIL
    return g.nodes[i].op == sw::op_code::adam || sw::core_operations::holds(g, i);
#else
    return g.nodes[i].op != sw::op_code::einsum && sw::core_operations::holds(g, i);
#endif
  }
};
constexpr int nodes = step<sw::fused_optimizer, sw::partial_lower<supported, 2>>::program.node_count;

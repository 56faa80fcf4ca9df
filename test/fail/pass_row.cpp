// SPDX-License-Identifier: Apache-2.0
// Of passes in a row that are verified together, the one that broke the graph is named, not the last.
// expect: graph: a node's extents or placement are not what its operation's rule gives for its operands
// expect(types): <breaks, ?shardwise::in_module<

#include "small_step.hpp"
#include <shardwise/pass/simplify/simplify.hpp>

struct breaks {
  using shardwise_pass = void;
  using verified_with_next = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
#ifdef SHARDWISE_FAIL
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::einsum) g.nodes[i].spec = g.nodes[g.nodes[i].in[0]].spec == 0 ? 1 : 0;
#endif
    return g.node_count > 0 ? sw::finding{} : sw::finding{sw::problem::graph_cycle};
  }
};
using passes = sw::pipeline<sw::cancel_redistributions, breaks, sw::merge_common>;
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

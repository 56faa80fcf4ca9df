// SPDX-License-Identifier: Apache-2.0
// A pass drops an optimizer update and declares to keep them.
// expect: a pass changed what it declares to preserve
// expect(types): <drop, ?shardwise::kept::updates ?>
// expect(text): pass: drop; given: updates

#include "small_step.hpp"

struct drop {
  using shardwise_pass = void;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates>;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
#ifdef SHARDWISE_FAIL
    g.node_count -= 1;  // the last node is an update
#endif
    return g.node_count > 0 ? sw::finding{} : sw::finding{sw::problem::graph_cycle};
  }
};
using passes = sw::pipeline<drop>;
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

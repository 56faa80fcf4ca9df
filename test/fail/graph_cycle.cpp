// SPDX-License-Identifier: Apache-2.0
// A pass leaves a node that reads a later one.
// expect: graph: a node reads a node that does not come before it
// expect(types): <keep ?>

#include "small_step.hpp"

struct keep {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr auto value = [] {
      auto g = Source::value;
#ifdef SHARDWISE_FAIL
      for (auto& n : g.nodes)
        if (n.op == sw::op_code::adam) n.in[1] = g.node_count - 1;
#endif
      return g;
    }();
  };
};
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<keep>>;
constexpr int nodes = step::program.node_count;

// SPDX-License-Identifier: Apache-2.0
// A pass declares a gradient summed that is not.
// expect: graph: a node's extents or placement are not what its operation's rule gives for its operands
// expect(types): <keep ?>

#include "small_step.hpp"

struct keep {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr auto value = [] {
      auto g = Source::value;
#ifdef SHARDWISE_FAIL
      for (auto& s : g.specs)
        if (s.place[0].is_partial()) s.place[0] = sw::replicate_value();
#endif
      return g;
    }();
  };
};
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<keep>>;
constexpr int nodes = step::program.node_count;

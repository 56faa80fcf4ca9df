// SPDX-License-Identifier: Apache-2.0
// A pass gives a node two modules deep another placement: the error names the pass, the module and the node.
// expect: graph: a node's extents or placement are not what its operation's rule gives for its operands
// expect: <misplace ?>|misplace,
// expect(text): pass: misplace; module: layers.1.mlp; node: gelu_erf_1; which reads: add_3
// located: layers.1.mlp gelu_erf_1

#include "nested_step.hpp"

struct misplace {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr auto value = [] {
      auto g = Source::value;
#ifdef SHARDWISE_FAIL
      const int i = sw::find_node(g, "gelu_erf_1");
      sw::spec s = g.spec_of(i);
      s.place[0] = sw::reduced_value();
      sw::builder b = g.edit();
      g.nodes[i].spec = b.intern(s);
      g.finish(b);
#endif
      return g;
    }();
  };
};
using step = sw::train_step<nested<add_input>::model, mean_task, plan, mesh, sw::adam<>, sw::pipeline<misplace>>;
constexpr int nodes = step::program.node_count;

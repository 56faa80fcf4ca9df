// SPDX-License-Identifier: Apache-2.0
// functionalise behind an optimizer that updates what the graph also writes in place.
// expect: functionalise: the graph updates a tensor that it also writes in place

#include <shardwise/pass/functionalise/functionalise.hpp>

#include "small_step.hpp"

// Halves the weight after its update.
struct decayed {
  using shardwise_pass = void;
  using admits_mutation = void;
  template <class Source>
  struct run {
    static constexpr auto value = [] {
      sw::graph<Source::value.node_count + 2, Source::value.spec_count, sw::graph_type_of<Source>::scope_capacity> g;
      sw::copy_into(g, Source::value);
      sw::builder b = g.edit();
      sw::node n = sw::empty_node;
      n.op = sw::op_code::scale;
      n.f = 0.5;
      n.inputs = 1;
      n.in[0] = 0;
      n.spec = b.nodes[0].spec;
      const int half = b.append(n);
      n = sw::empty_node;
#ifdef SHARDWISE_FAIL
      n.op = sw::op_code::copy_;
#else
      n.op = sw::op_code::assign;
#endif
      n.inputs = 2;
      n.in[0] = 0;
      n.in[1] = half;
      n.spec = b.nodes[0].spec;
      b.append(n);
      g.finish(b);
      return g;
    }();
  };
};
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<>, sw::pipeline<decayed, sw::functionalise>>;
constexpr int nodes = step::program.node_count;

// SPDX-License-Identifier: Apache-2.0
// A pass drops an optimizer update and declares to keep them.
// expect: a pass changed what it declares to preserve
// expect: <drop, ?shardwise::kept::updates ?>

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
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
using step = sw::train_step<model, task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

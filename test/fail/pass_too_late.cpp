// SPDX-License-Identifier: Apache-2.0
// A pass stands after one that must be applied after it.
// expect: passes that are applied already must be applied after this one
// expect: <fuse, ?shardwise::pass_order::must_precede<schedule> ?>

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
struct keep {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr const auto& value = Source::value;
  };
};
struct fuse : keep {};
struct schedule : keep {
  using apply_after = sw::passes_list<fuse>;
};
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<schedule, fuse>;
#else
using passes = sw::pipeline<fuse, schedule>;
#endif
using step = sw::train_step<model, task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

// SPDX-License-Identifier: Apache-2.0
// A pass stands in a pipeline without the one that it needs.
// expect: are the prerequisites of this one but are not applied
// expect: <schedule, ?shardwise::pass_order::missing_prerequisite<fuse>, ?shardwise::pass_order::applied_passes<other> ?>

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
struct other : keep {};
struct fuse : keep {};
struct schedule : keep {
  using prerequisites = sw::passes_list<fuse>;
};
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<other, schedule, fuse>;
#else
using passes = sw::pipeline<other, fuse, schedule>;
#endif
using step = sw::train_step<model, task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

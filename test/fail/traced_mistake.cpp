// SPDX-License-Identifier: Apache-2.0
// A mistake in a model's forward is one error, however much of the step follows from it.
// expect: module: the input's last dim differs from the module's number of input features

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net1),
                           (sw::linear<6, 8, sw::child<Bound, 1>>, net2));
  constexpr auto forward(const auto& x) const {
#ifdef SHARDWISE_FAIL
    return net2(sw::softmax(net1(sw::permute<1, 0>(x))));
#else
    return net2(sw::softmax(net1(x)));
#endif
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
using step = sw::train_step<model, task, plan, mesh>;
constexpr int nodes = step::program.node_count;

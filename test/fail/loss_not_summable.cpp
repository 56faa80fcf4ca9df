// SPDX-License-Identifier: Apache-2.0
// A task returns a value that is a maximum over the ranks.
// expect: train_step: the loss is partial with a reduction other than sum, so it is not the sum of the ranks' losses
// expect: operand<shardwise::shape<>, shardwise::partial<.*?>

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
#ifdef SHARDWISE_FAIL
using constant = sw::input_tensor<float, sw::shape<>, sw::on<dp, sw::partial<sw::reduction::max>>>;
#else
using constant = sw::input_tensor<float, sw::shape<>, sw::on<dp, sw::partial<>>>;
#endif
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>, constant>;
  constexpr auto operator()(const auto&, const auto&, const auto& loss) const { return loss; }
};
using step = sw::train_step<model, task, plan, mesh>;
constexpr int nodes = step::program.node_count;

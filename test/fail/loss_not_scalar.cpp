// SPDX-License-Identifier: Apache-2.0
// A task returns one loss for each row of the batch.
// expect: train_step: the loss must be a scalar (rank 0)
// expect: shardwise::operand<shardwise::shape<4L?>, shardwise::shard<0(, 1)?> ?>

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
  constexpr auto operator()(const auto& m, const auto& x) const {
#ifdef SHARDWISE_FAIL
    return sw::mean<1>(m(x));
#else
    return sw::mean(m(x));
#endif
  }
};
using step = sw::train_step<model, task, plan, mesh>;
constexpr int nodes = step::program.node_count;

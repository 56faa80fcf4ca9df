// SPDX-License-Identifier: Apache-2.0
// A sequence-parallel norm's gradients are summed over tp, those of the layer in its group are not.
// expect: fully_shard: of the parameters of a group with flat_parameters a style reduces the gradients of some over a mesh axis
// located: norm param_1

#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, in), (sw::rms_norm_module<4>, norm));
  constexpr auto forward(const auto& x) const { return norm(in(x)); }
};
struct task {
  using x = sw::dtensor_of<float, sw::shape<4, 2, 4>, mesh, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<sw::input_like<x>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
template <class... Own>
using of_norm = sw::at<"norm", sw::prepare_input<tp, sw::shard<1>>, sw::sequence_parallel<tp>,
                       sw::prepare_output<tp, sw::replicate>, Own...>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, of_norm<>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, of_norm<sw::fully_shard<dp, sw::flat_parameters>>>;
#endif
using step = sw::train_step<net, task, plan, mesh, sw::sgd<>>;
static_assert(step::peak_bytes > 0);

// SPDX-License-Identifier: Apache-2.0
// The README's wrong plan: both layers column-wise, so the second one would read shards as if they were whole.
// expect: colwise: the input must be
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};

#ifdef SHARDWISE_FAIL
using second = sw::colwise<tp>;
#else
using second = sw::rowwise<tp>;
#endif
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", second>>;

struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};

using step = sw::train_step<mlp, task, plan, mesh>;
static_assert(step::peak_bytes > 0);

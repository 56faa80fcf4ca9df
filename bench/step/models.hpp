// SPDX-License-Identifier: Apache-2.0
// The models whose steps are timed: two perceptrons under tensor parallelism, stacks of linear layers under data
// parallelism, and the example's language model.
#pragma once

#include <shardwise/shardwise.hpp>

#include "../../examples/train_text/model.hpp"

namespace bench {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

// 10 -> 16 -> 10, twice, on 20 rows; the loss is the sum of the outputs.
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
template <class Bound = sw::unbound>
struct two_mlps : sw::module<two_mlps<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (mlp<>, mlp_0), (mlp<>, mlp_1));
  constexpr auto forward(const auto& x) const { return mlp_1(mlp_0(x)); }
};

template <int Width, class Bound = sw::unbound>
struct linear_relu : sw::module<linear_relu<Width, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<Width, Width>, fc));
  constexpr auto forward(const auto& x) const { return sw::relu(fc(x)); }
};
template <int Layers, int Width>
struct stack {
  template <class Bound>
  using layer = linear_relu<Width, Bound>;
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<Layers, layer>, mod));
    constexpr auto forward(const auto& x) const { return mod(x); }
  };
};

template <int Rows, int Width, class Placement>
struct sum_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<Rows, Width>, Placement>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};

template <int N, class Backend, class Pipeline = sw::pipeline<>>
using tensor_parallel_step =
    sw::train_step<two_mlps, sum_task<20, 10, sw::on<tp<N>, sw::replicate>>,
                   sw::plan<sw::at<"*.net1", sw::colwise<tp<N>>>, sw::at<"*.net2", sw::rowwise<tp<N>>>>, sw::mesh<tp<N>>,
                   sw::sgd<>, Pipeline, float, Backend>;

// `Rows` on each rank.
template <int Layers, int Width, int Rows, int N, class Backend, class Pipeline = sw::pipeline<>>
using data_parallel_step =
    sw::train_step<stack<Layers, Width>::template model, sum_task<Rows * N, Width, sw::on<dp<N>, sw::shard<0>>>,
                   sw::plan<sw::data_parallel<dp<N>>>, sw::mesh<dp<N>>, sw::adam<>, Pipeline, float, Backend>;

using gpt_size = train_text::config<16, 128, 128, 4, 4>;
template <int D, int N, class Backend>
using gpt_step = sw::train_step<train_text::gpt_of<gpt_size>::gpt, train_text::next_byte<gpt_size, dp<D>>,
                                train_text::megatron_plan<gpt_size, dp<D>, tp<N>>, sw::mesh<dp<D>, tp<N>>,
                                sw::clip_norm<sw::adamw<true>>, sw::pipeline<>, float, Backend>;

}  // namespace bench

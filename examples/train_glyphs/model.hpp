// SPDX-License-Identifier: Apache-2.0
// The network, three convolutions and two linear layers; its task, and the plan: the batch over the ranks.
#pragma once

#include <cstdint>

#include <shardwise/more_functions.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>

#include "classes.hpp"
#include "images.hpp"

namespace train_glyphs {

namespace sw = shardwise;

#if defined(TRAIN_GLYPHS_RANKS)
inline constexpr int ranks = TRAIN_GLYPHS_RANKS;
#else
inline constexpr int ranks = 4;
#endif
inline constexpr int batch = 128;  // images of a step, on all ranks together
inline constexpr int filters = 16, filter_side = 5;
static_assert(batch % ranks == 0, "TRAIN_GLYPHS_RANKS must divide the batch of 128, so that each rank has as many images");

struct dp : sw::axis<ranks> {};  // parts of the batch
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;

// Convolution, norm, relu, the largest of each 2 x 2. The statistics of the norm are those of the whole batch: the ranks' together.
template <int In, int Out, int Kernel, class Bound = sw::unbound>
struct block : sw::module<block<In, Out, Kernel, Bound>, Bound> {
  template <class B>
  using rebound = block<In, Out, Kernel, B>;
  SHARDWISE_MEMBERS(Bound,
                    (sw::conv2d_module<In, Out, Kernel, sw::convolution_options{.padding = Kernel / 2}, sw::unbound, false>,
                     conv),
                    (sw::batch_norm2d_module<Out>, norm));

  template <class X>
  constexpr auto forward(const X& x) const {
    return sw::max_pool2d<sw::pool_options{.kernel = 2}>(sw::relu(norm(conv(x))));
  }
};

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  static constexpr int left = side / 8;  // after three halvings
  SHARDWISE_MEMBERS(Bound, (block<1, filters, filter_side>, first), (block<filters, 32, 3>, second),
                    (block<32, 64, 3>, third), (sw::linear<64 * left * left, 128>, hidden),
                    (sw::linear<128, static_cast<int>(classes.size())>, head));

  // images (n, 1, side, side) -> logits (n, classes)
  template <class X>
  constexpr auto forward(const X& x) const {
    return head(sw::relu(hidden(sw::flatten<1, 3>(third(second(first(x)))))));
  }
};

using images = sw::input_tensor<float, sw::shape<batch, 1, side, side>, sw::on<dp, sw::shard<0>>>;
using labels = sw::input_tensor<std::int32_t, sw::shape<batch>, sw::on<dp, sw::shard<0>>>;

struct recognise {
  using inputs = sw::inputs<images, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label, sw::label_smoothing{0.05});
  }
};

// The logits themselves, for judging.
struct answer {
  using inputs = sw::inputs<images>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};

using step = sw::train_step<network, recognise, plan, mesh, sw::clip_norm<sw::adamw<true>>,
                            sw::pipeline<sw::comm_fusion_in_place<25>>>;
using judge =
    sw::with_parameters_of<sw::forward_step<network, answer, plan, mesh>, step>;  // by the weights of step's executor

}  // namespace train_glyphs

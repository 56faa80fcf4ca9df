// SPDX-License-Identifier: Apache-2.0
// A training step of three equal blocks, a perceptron in each, on two data-parallel and two tensor-parallel ranks: what
// errors two modules deep are made of.
#pragma once

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

// Between: what the perceptron does with what its layer gives.
template <class Between, class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Between, Bound>, Bound> {
  template <class B>
  using rebound = perceptron<Between, B>;
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return Between{}(sw::gelu(net(x)), x); }
};
template <class Between>
struct nested {
  template <class Bound = sw::unbound>
  struct block : sw::module<block<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (perceptron<Between>, mlp));
    constexpr auto forward(const auto& x) const { return x + mlp(x); }
  };
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<3, block>, layers));
    constexpr auto forward(const auto& x) const { return layers(x); }
  };
};

struct add_input {
  constexpr auto operator()(const auto& h, const auto& x) const { return h + x; }
};
struct mean_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
using plan = sw::plan<sw::data_parallel<dp>>;

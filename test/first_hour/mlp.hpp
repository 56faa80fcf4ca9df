// SPDX-License-Identifier: Apache-2.0
// What README's first program declares, for the programs that go wrong after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(mlp, (sw::linear<10, 16, sw::child<Bound, 0>>, net1),
                           (sw::linear<16, 10, sw::child<Bound, 1>>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};

using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;

struct task {
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};

using step = sw::train_step<mlp, task, plan, mesh, sw::adam<>>;

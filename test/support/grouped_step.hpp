// SPDX-License-Identifier: Apache-2.0
// What wrong programs about frozen parameters and groups of parameters share: two layers, data parallel over two ranks.
#pragma once

#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 10>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
template <class... Entries>
using step = sw::train_step<two_linears, task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh, sw::adam<>>;

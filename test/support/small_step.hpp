// SPDX-License-Identifier: Apache-2.0
// What a wrong training step is made of: one_linear on two data-parallel ranks, four rows, the mean of its outputs.
#pragma once

#include <shardwise/module/train_step.hpp>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
using four_rows = sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>;
struct mean_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};

// A pass that changes nothing.
struct unchanged {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr const auto& value = Source::value;
  };
};

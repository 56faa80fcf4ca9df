// SPDX-License-Identifier: Apache-2.0
// Parameters shared between programs of different models: as many, but others.
// expect: with_parameters_of: the two programs do not have the same parameters and buffers
#include <shardwise/shardwise.hpp>

#include <shardwise/runtime/program/shared_parameters.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using train = sw::train_step<one_linear, task, sw::plan<>, mesh>;
#ifdef SHARDWISE_FAIL
using judge = sw::forward_step<one_norm, task, sw::plan<>, mesh>;
#else
using judge = sw::forward_step<one_linear, task, sw::plan<>, mesh>;
#endif
constexpr auto bytes = sw::with_parameters_of<judge, train>::peak_bytes;

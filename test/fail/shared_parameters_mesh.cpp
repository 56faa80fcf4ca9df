// SPDX-License-Identifier: Apache-2.0
// Parameters shared between programs of different meshes.
// expect: with_parameters_of: the two programs are of different meshes
#include <shardwise/shardwise.hpp>

#include <shardwise/runtime/program/shared_parameters.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
struct other : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using judged = sw::mesh<other>;
#else
using judged = mesh;
#endif
using train = sw::train_step<one_linear, task, sw::plan<>, mesh>;
using judge = sw::forward_step<one_linear, task, sw::plan<>, judged>;
constexpr auto bytes = sw::with_parameters_of<judge, train>::peak_bytes;

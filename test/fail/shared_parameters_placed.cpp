// SPDX-License-Identifier: Apache-2.0
// Parameters shared between programs with different plans: one block would be two parts of the weights.
// expect: with_parameters_of: a parameter or buffer lies otherwise in the two programs
// expect(text): parameter number: 0; parameter: "net1.weight"; mesh: "tp" of 2; operands: float[16, 10] (tp: replicate), float[16, 10] (tp: shard<0>)
#include <shardwise/shardwise.hpp>

#include <shardwise/runtime/program/shared_parameters.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 10>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
#ifdef SHARDWISE_FAIL
using judged = sw::plan<>;
#else
using judged = plan;
#endif
using train = sw::train_step<two_linears, task, plan, mesh>;
using judge = sw::forward_step<two_linears, task, judged, mesh>;
constexpr auto bytes = sw::with_parameters_of<judge, train>::peak_bytes;

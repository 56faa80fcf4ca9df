// SPDX-License-Identifier: Apache-2.0
// A checkpoint is given to a parameter.
// expect: plan: this path names a parameter or buffer, and styles and modes apply to modules, as checkpoints do
// expect(g++): plan_entry<
// expect(clang): plan_entry<
#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net2.weight", sw::checkpoint>>;
#else
using plan = sw::plan<sw::at<"net2", sw::checkpoint>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

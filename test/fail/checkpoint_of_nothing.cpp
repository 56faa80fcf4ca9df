// SPDX-License-Identifier: Apache-2.0
// A checkpoint that computes nothing again.
// expect: checkpoint_only: no operation is named, so nothing would be computed again
#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"*", sw::checkpoint_only<>>>;
#else
using plan = sw::plan<sw::at<"*", sw::checkpoint_only<"relu">>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

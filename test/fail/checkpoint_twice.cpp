// SPDX-License-Identifier: Apache-2.0
// An entry says two things of what a module keeps.
// expect: plan: an entry lists several checkpoints
// expect(g++): checkpoint_except<
// expect(clang): checkpoint_except<
#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"*", sw::checkpoint, sw::checkpoint_except<"matmul">>>;
#else
using plan = sw::plan<sw::at<"*", sw::checkpoint>, sw::at<"net1", sw::checkpoint_except<"matmul">>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

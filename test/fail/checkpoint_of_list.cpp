// SPDX-License-Identifier: Apache-2.0
// A checkpoint is given to a list instead of its elements.
// expect: plan: a checkpoint is given to a list, which is not called as one
// expect(g++): plan_entry<
// expect(clang): plan_entry<
#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return sw::relu(net(x)); }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<2, block>, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"layers", sw::checkpoint>>;
#else
using plan = sw::plan<sw::at<"layers.*", sw::checkpoint>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

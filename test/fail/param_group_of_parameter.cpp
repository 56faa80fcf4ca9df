// SPDX-License-Identifier: Apache-2.0
// A group is given to a parameter, in place of the module that has it and a pattern.
// expect: plan: this path names a parameter or buffer, and styles and modes apply to modules
// expect: of whose parameters param_group<name, pattern> takes those that match
// expect: plan_entry<

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net2.weight", sw::param_group<"head">>>;
#else
using plan = sw::plan<sw::at<"net2", sw::param_group<"head", "weight">>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

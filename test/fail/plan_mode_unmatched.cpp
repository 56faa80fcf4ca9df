// SPDX-License-Identifier: Apache-2.0
// A mode is given to a module that is not there.
// expect: plan: this path names no module of the model
// expect: nearest<
#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, backbone), (sw::linear<8, 8>, head));
  constexpr auto forward(const auto& x) const { return head(backbone(x)); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"backbon", sw::eval_mode>>;
#else
using plan = sw::plan<sw::at<"backbone", sw::eval_mode>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

// SPDX-License-Identifier: Apache-2.0
// A mode, which holds for all below a module, stands beside a style, which holds for the module.
// expect: plan: an entry names a mode, frozen or a param_group beside something else
#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>, sw::eval_mode>, sw::at<"net2", sw::rowwise<tp>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net1", sw::eval_mode>, sw::at<"net2", sw::rowwise<tp>>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;

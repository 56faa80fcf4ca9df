// SPDX-License-Identifier: Apache-2.0
// A row-wise style on a norm, which has no products to sum.
// expect: plan: this style does not apply to the module that the path names
// expect: plan_entry<

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"norm", sw::rowwise<tp>>>;
#else
using plan = sw::plan<sw::at<"norm", sw::prepare_input<tp, sw::replicate>>>;
#endif
using bound = sw::bind<one_norm, plan, mesh>;
constexpr auto members = sizeof(bound);

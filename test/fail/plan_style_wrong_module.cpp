// SPDX-License-Identifier: Apache-2.0
// A style for linear layers on a norm.
// expect: plan: this style does not apply to the module that the path names
// expect: plan_entry<
// expect(text): plan_entry: at<"norm", colwise<tp>>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"norm", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::at<"norm", sw::sequence_parallel<tp>>>;
#endif
using bound = sw::bind<one_norm, plan, mesh>;
constexpr auto members = sizeof(bound);

// SPDX-License-Identifier: Apache-2.0
// Two styles of one entry place a weight on the same axis.
// expect: plan: two styles of one entry place the parameters of a module on the same mesh axis
// expect: plan_entry<

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>, sw::rowwise<tp>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>, sw::rowwise<dp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

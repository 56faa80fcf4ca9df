// SPDX-License-Identifier: Apache-2.0
// A style of a plan names an axis that the mesh does not have.
// expect: plan: a style names a mesh axis that the mesh does not have
// expect: plan_entry<.*dp
// expect(text): plan_entry: at<"net1", colwise<dp>>; mesh: "tp" of 2

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net1", sw::colwise<dp>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

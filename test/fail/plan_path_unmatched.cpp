// SPDX-License-Identifier: Apache-2.0
// A plan names a module that the model does not have.
// expect: plan: this path names no module of the model
// expect(g++): "nett1"}, shardwise::colwise<tp.*nearest<shardwise::fixed_string<5>{"net1"}, shardwise::fixed_string<5>{"net2"}
// expect(clang): "nett1"}, shardwise::colwise<tp.*nearest<shardwise::fixed_string<5>{"net1"}, shardwise::fixed_string<5>{"net2"}
// expect(nvcc): 'n', 'e', 't', 't', '1', .*nearest<shardwise::fixed_string<5UL>{{'n', 'e', 't', '1', '.000'}}
// expect(text): plan_entry: at<"nett1", colwise<tp>>; nearest: "net1", "net2"
#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"nett1", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

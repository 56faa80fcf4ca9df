// SPDX-License-Identifier: Apache-2.0
// The model's group averages gradients, a layer's sums them.
// expect: one loss has one gradient; give average_gradients to all of them or to none
// expect(g++): plan_entry<
// expect(clang): plan_entry<
// expect(text): axis: "dp" of 2; plan_entry: fully_shard<dp, average_gradients>, at<"net1", fully_shard<dp>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::average_gradients>, sw::at<"net1", sw::fully_shard<dp>>>;
#else
using plan =
    sw::plan<sw::fully_shard<dp, sw::average_gradients>, sw::at<"net1", sw::fully_shard<dp, sw::average_gradients>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

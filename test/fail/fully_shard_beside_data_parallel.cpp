// SPDX-License-Identifier: Apache-2.0
// Parameters stored whole and in shards on one axis.
// expect: plan: parameters are stored whole on a mesh axis by data_parallel and in shards by fully_shard
// expect(g++): plan_entry<
// expect(clang): plan_entry<
// expect(text): axis: "dp" of 2; plan_entry: data_parallel<dp>, at<"net1", fully_shard<dp>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::fully_shard<dp>>>;
#else
using plan = sw::plan<sw::fully_shard<dp>, sw::at<"net1", sw::fully_shard<dp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

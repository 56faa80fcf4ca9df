// SPDX-License-Identifier: Apache-2.0
// One entry shards a layer over two axes.
// expect: fully_shard: one entry of the plan has it twice
// expect(g++): plan_entry<
// expect(clang): plan_entry<
// expect(text): plan_entry: at<"net1", fully_shard<dp>, fully_shard<copies>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct copies : sw::axis<2> {};
using mesh = sw::mesh<dp, copies>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net1", sw::fully_shard<dp>, sw::fully_shard<copies>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::fully_shard<dp, sw::replicate_over<copies>>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

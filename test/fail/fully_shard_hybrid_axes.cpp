// SPDX-License-Identifier: Apache-2.0
// Hybrid shards over one axis.
// expect: fully_shard: parameters are to be sharded and replicated over one and the same mesh axis
// expect(g++): fully_shard<dp, .*replicate_over<dp>
// expect(clang): fully_shard<dp, .*replicate_over<dp>
// expect(text): style: fully_shard<dp, replicate_over<dp>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct copies : sw::axis<2> {};
using mesh = sw::mesh<dp, copies>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::replicate_over<dp>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::replicate_over<copies>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

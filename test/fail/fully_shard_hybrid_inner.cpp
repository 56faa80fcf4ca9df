// SPDX-License-Identifier: Apache-2.0
// Hybrid shards whose copies lie along the inner axis.
// expect: fully_shard: parameters are to be sharded and replicated over one and the same mesh axis
// expect(g++): shard_over<local>, .*replicate_over<local>
// expect(clang): shard_over<local>, .*replicate_over<local>
// expect(text): style: fully_shard<dp, shard_over<local>, replicate_over<local>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct local : sw::axis<2> {};
struct copies : sw::axis<2> {};
using mesh = sw::mesh<copies, dp, local>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::shard_over<local>, sw::replicate_over<local>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::shard_over<local>, sw::replicate_over<copies>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

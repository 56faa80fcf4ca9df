// SPDX-License-Identifier: Apache-2.0
// Rows split twice over one axis.
// expect: fully_shard: parameters are to be split twice over one mesh axis
// expect(g++): fully_shard<dp, .*shard_over<dp>
// expect(clang): fully_shard<dp, .*shard_over<dp>
// expect(text): style: fully_shard<dp, shard_over<dp>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct local : sw::axis<2> {};
using mesh = sw::mesh<dp, local>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::shard_over<dp>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::shard_over<local>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

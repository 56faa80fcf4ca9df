// SPDX-License-Identifier: Apache-2.0
// Hybrid shards whose copies lie along an axis that the mesh does not have.
// expect: plan: a style names a mesh axis that the mesh does not have
// expect(g++): plan_entry<
// expect(clang): plan_entry<
// expect(text): plan_entry: fully_shard<dp, replicate_over<copies>>; mesh: "dp" of 2

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
struct copies : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::replicate_over<copies>>>;
#else
using plan = sw::plan<sw::fully_shard<dp>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

// SPDX-License-Identifier: Apache-2.0
// A layer is split by columns on the axis over which its group is sharded.
// expect: fully_shard: a style of the module already places this tensor on a mesh axis
// expect(g++): member_named<
// expect(clang): member_named<
// expect(text): member: "weight"

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp>, sw::at<"net1", sw::colwise<dp>>>;
#else
using plan = sw::plan<sw::fully_shard<dp>, sw::at<"net1", sw::colwise<tp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

// SPDX-License-Identifier: Apache-2.0
// A layer of a group with flat parameters is split by columns.
// expect: fully_shard: a parameter of a group with flat_parameters is split by a style of its module

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, sw::at<"net1", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, sw::at<"net1", sw::colwise<tp>, sw::fully_shard<dp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

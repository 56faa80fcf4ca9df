// SPDX-License-Identifier: Apache-2.0
// A layer of flat parameters is frozen.
// expect: fully_shard: the plan has flat_parameters, and beside them mixed, frozen, param_group, accumulate

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, sw::at<"net1", sw::frozen>>;
#else
using plan = sw::plan<sw::fully_shard<dp>, sw::at<"net1", sw::frozen>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

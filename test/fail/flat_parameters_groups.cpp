// SPDX-License-Identifier: Apache-2.0
// Flat parameters in two groups of the optimizer.
// expect: fully_shard: the plan has flat_parameters, and beside them mixed, frozen, param_group, accumulate

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, sw::param_group<"no_decay", "bias">>;
#else
using plan = sw::plan<sw::fully_shard<dp>, sw::param_group<"no_decay", "bias">>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

// SPDX-License-Identifier: Apache-2.0
// The gradients of flat parameters are kept.
// expect: fully_shard: the plan has flat_parameters, and beside them mixed, frozen, param_group, accumulate

#include <shardwise/module/keep_gradients.hpp>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>, sw::keep_gradients<>>;
#else
using plan = sw::plan<sw::fully_shard<dp>, sw::keep_gradients<>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

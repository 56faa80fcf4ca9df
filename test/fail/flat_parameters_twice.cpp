// SPDX-License-Identifier: Apache-2.0
// Flat parameters, said twice.
// expect: fully_shard: an option is given twice

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters, sw::flat_parameters>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

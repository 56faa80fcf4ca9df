// SPDX-License-Identifier: Apache-2.0
// Flat parameters in hybrid shards.
// expect: fully_shard: flat_parameters are split over one axis, and shard_over or replicate_over names a second one

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::replicate_over<tp>, sw::flat_parameters>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::replicate_over<tp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

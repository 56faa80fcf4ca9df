// SPDX-License-Identifier: Apache-2.0
// Flat parameters over two axes.
// expect: fully_shard: flat_parameters are split over one axis, and shard_over names a second one

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters, sw::shard_over<tp>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::shard_over<tp>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

// SPDX-License-Identifier: Apache-2.0
// An eager model with flat parameters.
// expect: fully_shard: an eager model is bound with a plan with flat_parameters

#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::flat_parameters>>;
#else
using plan = sw::plan<sw::fully_shard<dp>>;
#endif
using model = sw::bind_eager<two_linears, plan, mesh>;
constexpr auto members = sizeof(model);

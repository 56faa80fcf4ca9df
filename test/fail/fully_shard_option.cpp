// SPDX-License-Identifier: Apache-2.0
// A placement among the options of fully_shard.
// expect: fully_shard: an option is given that it does not have
// expect(g++): fully_shard<dp, .*shard<0
// expect(clang): fully_shard<dp, .*shard<0
// expect(text): style: fully_shard<dp, shard<0>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::shard<0>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::reshard_after_forward<false>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

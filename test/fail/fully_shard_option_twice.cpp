// SPDX-License-Identifier: Apache-2.0
// What is kept after the forward pass, said twice.
// expect: fully_shard: an option is given twice
// expect(g++): reshard_after_forward<true>, .*reshard_after_forward<false>
// expect(clang): reshard_after_forward<true>, .*reshard_after_forward<false>
// expect(text): style: fully_shard<dp, reshard_after_forward<true>, reshard_after_forward<false>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::fully_shard<dp, sw::reshard_after_forward<true>, sw::reshard_after_forward<false>>>;
#else
using plan = sw::plan<sw::fully_shard<dp, sw::reshard_after_forward<true>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

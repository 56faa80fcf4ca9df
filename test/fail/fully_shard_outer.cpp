// SPDX-License-Identifier: Apache-2.0
// Parameters over four times two ranks, to be kept over the four.
// expect: fully_shard: parameters are to be kept over some of the ranks after the forward pass
// expect(g++): shard_over<local>, .*reshard_after_forward<4>
// expect(clang): shard_over<local>, .*reshard_after_forward<4>
// expect(text): style: fully_shard<node, shard_over<local>, reshard_after_forward<4>>

#include "small_models.hpp"

struct node : sw::axis<4> {};
struct local : sw::axis<2> {};
using mesh = sw::mesh<node, local>;
#ifdef SHARDWISE_FAIL
using sharded = sw::fully_shard<node, sw::shard_over<local>, sw::reshard_after_forward<4>>;
#else
using sharded = sw::fully_shard<local, sw::shard_over<node>, sw::reshard_after_forward<4>>;
#endif
using bound = sw::bind<two_linears, sw::plan<sharded>, mesh>;
constexpr auto members = sizeof(bound);

// SPDX-License-Identifier: Apache-2.0
// Parameters over eight ranks of one axis, to be kept over groups of two.
// expect: fully_shard: parameters are to be kept over some of the ranks after the forward pass
// expect: make it two axes, the second of as many ranks as are to keep them
// expect(g++): reshard_after_forward<2>
// expect(clang): reshard_after_forward<2>
// expect(text): style: fully_shard<dp, reshard_after_forward<2>>

#include "small_models.hpp"

#ifdef SHARDWISE_FAIL
struct dp : sw::axis<8> {};
using mesh = sw::mesh<dp>;
using sharded = sw::fully_shard<dp, sw::reshard_after_forward<2>>;
#else
struct node : sw::axis<4> {};
struct local : sw::axis<2> {};
using mesh = sw::mesh<node, local>;
using sharded = sw::fully_shard<node, sw::shard_over<local>, sw::reshard_after_forward<2>>;
#endif
using bound = sw::bind<two_linears, sw::plan<sharded>, mesh>;
constexpr auto members = sizeof(bound);

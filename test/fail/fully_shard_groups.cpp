// SPDX-License-Identifier: Apache-2.0
// Parameters over eight ranks, to be kept over groups of two.
// expect: fully_shard: parameters are to be kept over some of the axis' ranks after the forward pass
// expect(g++): reshard_after_forward<2>
// expect(clang): reshard_after_forward<2>
// expect(text): style: fully_shard<dp, reshard_after_forward<2>>

#include "small_models.hpp"

struct dp : sw::axis<8> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using kept = sw::reshard_after_forward<2>;
#else
using kept = sw::reshard_after_forward<1>;
#endif
using bound = sw::bind<two_linears, sw::plan<sw::fully_shard<dp, kept>>, mesh>;
constexpr auto members = sizeof(bound);

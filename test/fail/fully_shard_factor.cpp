// SPDX-License-Identifier: Apache-2.0
// Parameters over eight ranks, to be kept over three of them after the forward pass.
// expect: it should be a factor of the axis' size
// expect(g++): reshard_after_forward<3>
// expect(clang): reshard_after_forward<3>
// expect(text): style: fully_shard<dp, reshard_after_forward<3>>; ranks asked for: 3; ranks in all: 8

#include "small_models.hpp"

struct dp : sw::axis<8> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using kept = sw::reshard_after_forward<3>;
#else
using kept = sw::reshard_after_forward<8>;
#endif
using bound = sw::bind<two_linears, sw::plan<sw::fully_shard<dp, kept>>, mesh>;
constexpr auto members = sizeof(bound);

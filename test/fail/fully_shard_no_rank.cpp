// SPDX-License-Identifier: Apache-2.0
// Parameters over two times two ranks, to be kept over none.
// expect: it should be a factor of the axis' size
// expect(g++): reshard_after_forward<0>
// expect(clang): reshard_after_forward<0>
// expect(text): style: fully_shard<dp, shard_over<local>, reshard_after_forward<0>>; ranks asked for: 0; ranks in all: 4

#include "small_models.hpp"

struct dp : sw::axis<2> {};
struct local : sw::axis<2> {};
using mesh = sw::mesh<dp, local>;
#ifdef SHARDWISE_FAIL
using kept = sw::reshard_after_forward<0>;
#else
using kept = sw::reshard_after_forward<true>;
#endif
using bound = sw::bind<two_linears, sw::plan<sw::fully_shard<dp, sw::shard_over<local>, kept>>, mesh>;
constexpr auto members = sizeof(bound);

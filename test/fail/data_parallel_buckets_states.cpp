// SPDX-License-Identifier: Apache-2.0
// Gradients that are reduce-scattered, in buckets.
// expect: data_parallel: buckets hold gradients that are all-reduced
// expect(g++): data_parallel<dp, .*buckets<9>
// expect(clang): data_parallel<dp, .*buckets<9>
// expect(text): style: data_parallel<dp, buckets<9>, shard_optimizer_states>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp, sw::buckets<9>, sw::shard_optimizer_states>>;
#else
using plan = sw::plan<sw::data_parallel<dp, sw::shard_optimizer_states>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

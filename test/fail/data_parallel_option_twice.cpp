// SPDX-License-Identifier: Apache-2.0
// Optimizer states in shards, said twice.
// expect: data_parallel: an option is given twice
// expect(g++): data_parallel<dp, .*shard_optimizer_states, .*average_gradients, .*shard_optimizer_states>
// expect(clang): data_parallel<dp, .*shard_optimizer_states, .*average_gradients, .*shard_optimizer_states>
// expect(text): style: data_parallel<dp, shard_optimizer_states, average_gradients, shard_optimizer_states>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp, sw::shard_optimizer_states, sw::average_gradients, sw::shard_optimizer_states>>;
#else
using plan = sw::plan<sw::data_parallel<dp, sw::shard_optimizer_states, sw::average_gradients>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);

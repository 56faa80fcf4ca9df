// SPDX-License-Identifier: Apache-2.0
// A checkpoint of flat parameters.
// expect: checkpoint: the program has flat_parameters

#include <shardwise/io/checkpoint/save.hpp>
#include <shardwise/runtime/executor/executor.hpp>

#include "small_step.hpp"

template <class... Options>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::fully_shard<dp, Options...>>, mesh, sw::sgd<>>;
#ifdef SHARDWISE_FAIL
using tried = step<sw::flat_parameters>;
#else
using tried = step<>;
#endif
void write(sw::executor<tried, sw::thread_rank<mesh>>& run) { sw::save(run, "folder"); }

// SPDX-License-Identifier: Apache-2.0
// Sums of gradients are forgotten of a step that has none.
// expect: executor: accumulate, update and zero_gradients are for programs that keep gradients from run to run

#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using in_plan = sw::plan<sw::data_parallel<dp>>;
#else
using in_plan = sw::plan<sw::data_parallel<dp>, sw::keep_gradients<>>;
#endif
using step = sw::train_step<one_linear, mean_task, in_plan, mesh, sw::adam<>>;

void use(sw::executor<step>& ex) { ex.zero_gradients(); }

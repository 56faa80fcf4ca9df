// SPDX-License-Identifier: Apache-2.0
// A step without its numbers.
// expect: executor: run takes the numbers of the step as one step_env
// expect: env.lr = 0.01; env.step = 1; run(env)

#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_step.hpp"

using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;

void use(sw::executor<step>& run) {
#ifdef SHARDWISE_FAIL
  run.run();
#else
  run.run(sw::step_env{});
#endif
}

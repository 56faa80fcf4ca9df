// SPDX-License-Identifier: Apache-2.0
// An eager tensor as the values of an input.
// expect: set_input: it is given an eager tensor (dtensor)
// expect: full_tensor().to_local().data

#include <shardwise/runtime/eager/dtensor.hpp>
#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_step.hpp"

using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;

using tensor = sw::dtensor_of<float, sw::shape<4, 8>, mesh>;

void use(sw::executor<step>& run, const tensor& x) {
#ifdef SHARDWISE_FAIL
  run.set_input(0, x);
#else
  run.set_input(0, x.to_local().data);
#endif
}

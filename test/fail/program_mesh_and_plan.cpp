// SPDX-License-Identifier: Apache-2.0
// Mesh and plan are swapped.
// expect: program: what is given where the plan belongs is no plan<...>
// expect: train_step<Model, Task, Plan, Mesh, Optimizer
// expect(g++): mesh<
// expect(clang): mesh<

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, mesh, plan, sw::adam<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;

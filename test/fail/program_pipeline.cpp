// SPDX-License-Identifier: Apache-2.0
// An optimizer where the pipeline of a forward_step belongs.
// expect: program: what is given where the pipeline belongs is no pipeline<...>
// expect: forward_step and function_step go without
// expect(g++): adam<
// expect(clang): adam<

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::forward_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#else
using step = sw::forward_step<one_linear, mean_task, plan, mesh>;
#endif
constexpr int parameters = step::parameter_total;

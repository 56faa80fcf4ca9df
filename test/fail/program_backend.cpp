// SPDX-License-Identifier: Apache-2.0
// An element type where the backend belongs.
// expect: program: what is given where the backend belongs, as the last argument, is none
// expect(g++): float
// expect(clang): float

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, float, float>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::host_backend>;
#endif
constexpr int parameters = step::parameter_total;

// SPDX-License-Identifier: Apache-2.0
// The element type is left out before the backend.
// expect: program: what is given where the element type of the parameters belongs is neither float nor double
// expect(g++): host_backend
// expect(clang): host_backend

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, sw::host_backend>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::host_backend>;
#endif
constexpr int parameters = step::parameter_total;

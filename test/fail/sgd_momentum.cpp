// SPDX-License-Identifier: Apache-2.0
// The momentum as an argument of sgd.
// expect: sgd: its argument says whether there is momentum, and is a number here
// expect: step_env::momentum

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<0.9>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<true>>;
#endif
constexpr int parameters = step::parameter_total;

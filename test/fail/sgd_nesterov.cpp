// SPDX-License-Identifier: Apache-2.0
// Nesterov's form without momentum.
// expect: sgd: Nesterov's form goes a further share of the momentum, and there is none

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<false, sw::sgd_form::nesterov>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<true, sw::sgd_form::nesterov>>;
#endif
constexpr int parameters = step::parameter_total;

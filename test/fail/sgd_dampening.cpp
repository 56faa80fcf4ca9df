// SPDX-License-Identifier: Apache-2.0
// Dampening without momentum.
// expect: sgd: dampening lessens the gradient's share of the momentum, and there is none

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<false, sw::sgd_form::dampened>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<true, sw::sgd_form::dampened>>;
#endif
constexpr int parameters = step::parameter_total;

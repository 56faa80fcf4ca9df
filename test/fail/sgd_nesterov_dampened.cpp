// SPDX-License-Identifier: Apache-2.0
// Nesterov's form with dampening, which torch.optim.SGD refuses, too.
// expect: sgd: Nesterov's form and dampening exclude each other

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step =
    sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<true, sw::sgd_form::nesterov | sw::sgd_form::dampened>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::sgd<true, sw::sgd_form::dampened>>;
#endif
constexpr int parameters = step::parameter_total;

// SPDX-License-Identifier: Apache-2.0
// amsgrad around an optimizer without a second moment.
// expect: amsgrad: what it keeps is the largest of Adam's second moments, and this optimizer has none

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::amsgrad<sw::lion<>>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::amsgrad<sw::adam<>>>;
#endif
constexpr int parameters = step::parameter_total;

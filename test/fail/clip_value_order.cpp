// SPDX-License-Identifier: Apache-2.0
// Values are clipped in front of the norm.
// expect: clip_value: values are clipped behind the norm
// expect: clip_norm<clip_value<...>>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::clip_value<sw::clip_norm<sw::adam<>>>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::clip_norm<sw::clip_value<sw::adam<>>>>;
#endif
constexpr int parameters = step::parameter_total;

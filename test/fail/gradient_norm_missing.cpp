// SPDX-License-Identifier: Apache-2.0
// The gradients' norm is asked for, and the optimizer clips by it, but does not report it.
// expect: gradient_norm: the program keeps none
#include <shardwise/shardwise.hpp>

#include <small_step.hpp>

#ifdef SHARDWISE_FAIL
using optimizer = sw::clip_norm<sw::adamw<>>;
#else
using optimizer = sw::report_norm<sw::clip_norm<sw::adamw<>>>;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, optimizer>;
double of(sw::executor<step>& run) { return run.gradient_norm(); }

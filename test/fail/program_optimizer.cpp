// SPDX-License-Identifier: Apache-2.0
// The optimizer is left out, and the pipeline stands in its place.
// expect: program: what is given where the optimizer belongs is none
// expect: write sgd<>, adam<>, adamw<> or clip_norm
// expect(g++): pipeline<
// expect(clang): pipeline<

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::pipeline<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>>;
#endif
constexpr int parameters = step::parameter_total;

// SPDX-License-Identifier: Apache-2.0
// A style where the plan belongs.
// expect: program: what is given where the plan belongs is no plan<...>
// expect: plan<data_parallel<axis>, at<path, colwise<axis>>>
// expect(g++): data_parallel<
// expect(clang): data_parallel<

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, sw::data_parallel<dp>, mesh, sw::adam<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;

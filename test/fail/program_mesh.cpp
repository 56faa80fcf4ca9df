// SPDX-License-Identifier: Apache-2.0
// An axis where the mesh belongs.
// expect: program: what is given where the mesh belongs is no mesh<...>
// expect(g++): \bdp\b
// expect(clang): \bdp\b

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, dp, sw::adam<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;

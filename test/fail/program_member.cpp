// SPDX-License-Identifier: Apache-2.0
// A program type of one's own without a member that executors read.
// expect: executor: the program lacks the member that program_member:: names
// expect: program_member::dyn_bound

#include <shardwise/runtime/program/offered.hpp>

#include "small_step.hpp"

using step = sw::train_step<one_linear, mean_task, plan, mesh>;
struct own : step {
#ifdef SHARDWISE_FAIL
  static constexpr struct none {
  } dyn_bound{};
#endif
};
constexpr bool ok = sw::checked_program<own>::ok;

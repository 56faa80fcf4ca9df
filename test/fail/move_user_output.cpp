// SPDX-License-Identifier: Apache-2.0
// What the step's loss depends on is moved into the next iteration.
// expect: move_to_next_iter_before: has not supported moving the nodes that produce users output result

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using moved = sw::iterated<bare_step, sw::move_descendants<"einsum", "sum">>;
#else
using moved = sw::iterated<bare_step, sw::move_descendants<"einsum", "all_reduce", "advance">>;
#endif
constexpr int kept = moved::kept_values;

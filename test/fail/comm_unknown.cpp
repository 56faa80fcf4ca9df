// SPDX-License-Identifier: Apache-2.0
// A collective that the graph does not have is moved into the next iteration.
// expect: iter_move_grads_and_optimizers: Cannot find a communication of that name

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using moved = sw::iterated<bare_step, sw::iter_move_grads_and_optimizers<"all_reduce_7", "einsum">>;
#else
using moved = sw::iterated<bare_step, sw::iter_move_grads_and_optimizers<"all_reduce", "einsum">>;
#endif
constexpr int kept = moved::kept_values;

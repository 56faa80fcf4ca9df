// SPDX-License-Identifier: Apache-2.0
// Nodes are moved before one that the graph does not have.
// expect: move_to_next_iter_before: there is no node of that name

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using moved = sw::iterated<bare_step, sw::iter_move_grads_and_optimizers<"all_reduce", "relu_9">>;
#else
using moved = sw::iterated<bare_step, sw::iter_move_grads_and_optimizers<"all_reduce", "einsum">>;
#endif
constexpr int kept = moved::kept_values;

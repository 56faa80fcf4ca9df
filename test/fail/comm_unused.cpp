// SPDX-License-Identifier: Apache-2.0
// The sum of the losses, which no update reads, is moved into the next iteration.
// expect: iter_move_grads_and_optimizers: that communication is not used by any fused optimizer
// expect(text): iter_move_grads_and_optimizers<"all_reduce_1", "einsum">

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using moved = sw::iterated<bare_step, sw::iter_move_grads_and_optimizers<"all_reduce_1", "einsum">>;
#else
using moved = sw::iterated<bare_step, sw::iter_move_grads_and_optimizers<"all_reduce", "einsum">>;
#endif
constexpr int kept = moved::kept_values;

// SPDX-License-Identifier: Apache-2.0
// An update that takes the run's number of the step is moved into the next iteration.
// expect: move_to_next_iter_before: a moved node depends on the run's number of the step

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using moved = sw::iterated<step<>, sw::move_descendants<"einsum", "all_reduce_1">>;
#else
using moved = sw::iterated<bare_step, sw::move_descendants<"einsum", "all_reduce", "advance">>;
#endif
constexpr int kept = moved::kept_values;

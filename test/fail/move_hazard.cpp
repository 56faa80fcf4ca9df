// SPDX-License-Identifier: Apache-2.0
// All updates are moved behind the first layer, which would read stale parameters.
// expect: move_to_next_iter_before: a value that a moved update writes is read before it would be written

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using moved = sw::iterated<bare_step, sw::move_descendants<"relu", "all_reduce", "advance">>;
#else
using moved = sw::iterated<bare_step, sw::move_descendants<"einsum", "all_reduce", "advance">>;
#endif
constexpr int kept = moved::kept_values;

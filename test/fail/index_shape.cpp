// SPDX-License-Identifier: Apache-2.0
// An index of another rank.
// expect: indexing: the operands' extents do not fit
// expect: where<shardwise::op::gather,
// expect(text): operation: gather; operands: float[4, 8] (tp: replicate), std::int32_t[3] (tp: replicate); mesh: "tp" of 2; at fault: the second operand; rank: 1; required rank: 2

#include <shardwise/graph/functions/indexing.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::gather<1>(real<sw::shape<4, 8>>{}, ids<sw::shape<3>>{}));
#else
using y = decltype(sw::gather<1>(real<sw::shape<4, 8>>{}, ids<sw::shape<4, 3>>{}));
#endif

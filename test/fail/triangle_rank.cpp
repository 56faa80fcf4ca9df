// SPDX-License-Identifier: Apache-2.0
// The lower triangle of a vector.
// expect: tril, triu: the operand needs at least two dims
// expect: where<shardwise::op::triangle,

#include <shardwise/graph/functions/fills.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::tril(real<sw::shape<8>>{}));
#else
using y = decltype(sw::tril(real<sw::shape<4, 8>>{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// Shares of a sum padded with ones.
// expect: a partial (not yet summed) value enters an operation that is not linear in it
// expect: where<shardwise::op::constant_pad,

#include <shardwise/graph/functions/fills.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::constant_pad<1, 1>(real<sw::shape<4, 8>, sw::partial<>>{}, 1));
#else
using y = decltype(sw::constant_pad<1, 1>(real<sw::shape<4, 8>, sw::partial<>>{}));
#endif

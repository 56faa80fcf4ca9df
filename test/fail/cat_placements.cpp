// SPDX-License-Identifier: Apache-2.0
// A join of a partial and a replicate tensor.
// expect: cat: the operands are placed differently on a mesh axis
// expect: where<shardwise::op::cat,

#include <shardwise/graph/functions/joins.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::cat<0>(real<sw::shape<4, 8>, sw::partial<>>{}, real<sw::shape<4, 8>>{}));
#else
using y = decltype(sw::cat<0>(real<sw::shape<4, 8>, sw::partial<>>{}, real<sw::shape<4, 8>, sw::partial<>>{}));
#endif

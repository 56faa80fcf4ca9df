// SPDX-License-Identifier: Apache-2.0
// A join of tensors whose other extents differ.
// expect: cat: the operands have different ranks, or different extents in a dim that is not joined
// expect: where<shardwise::op::cat,

#include <shardwise/graph/joins.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::cat<1>(real<sw::shape<4, 8>>{}, real<sw::shape<3, 8>>{}));
#else
using y = decltype(sw::cat<0>(real<sw::shape<4, 8>>{}, real<sw::shape<3, 8>>{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A join of tensors whose other extents differ.
// expect: cat: the operands have different ranks, or different extents in a dim that is not joined
// expect: where<shardwise::op::cat,
// expect(text): operation: cat; operands: float[4, 8] (tp: replicate), float[3, 8] (tp: replicate); mesh: "tp" of 2; at fault: the second operand; dim: 0; extent: 3; required extent: 4

#include <shardwise/graph/functions/joins.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::cat<1>(real<sw::shape<4, 8>>{}, real<sw::shape<3, 8>>{}));
#else
using y = decltype(sw::cat<0>(real<sw::shape<4, 8>>{}, real<sw::shape<3, 8>>{}));
#endif

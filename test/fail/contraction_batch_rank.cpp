// SPDX-License-Identifier: Apache-2.0
// A batched product whose operands have different numbers of batch dims.
// expect: matmul: the batch dims of lhs and rhs differ
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>, shardwise::operand<float, shardwise::shape<2L?, 8L?, 6L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<2, 8, 6>, mesh>;
#else
using b = typed<float, sw::shape<8, 6>, mesh>;
#endif
using c = decltype(sw::matmul(a{}, b{}));

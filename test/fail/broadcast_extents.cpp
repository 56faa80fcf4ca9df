// SPDX-License-Identifier: Apache-2.0
// Rows of eight plus rows of four.
// expect: pointwise: the operands' extents do not broadcast: aligned from the right, extents must be equal or 1
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>, shardwise::operand<float, shardwise::shape<4L?>, shardwise::replicate ?> ?>
// expect(text): operation: add; operands: float[4, 8] (tp: replicate), float[4] (tp: replicate); mesh: "tp" of 2; at fault: the second operand; dim: 0; extent: 4; other extent: 8

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = typed<float, sw::shape<4>, mesh>;
#else
using y = typed<float, sw::shape<8>, mesh>;
#endif
using z = decltype(x{} + y{});

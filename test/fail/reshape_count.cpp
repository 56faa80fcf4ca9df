// SPDX-License-Identifier: Apache-2.0
// A reshape to another number of elements.
// expect: reshape: the number of elements differs
// expect: where<shardwise::op::reshape, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?> ?>
// expect(text): operation: reshape; operand: float[4, 8] (tp: replicate); mesh: "tp" of 2; elements of the new extents: 30; elements of the tensor: 32

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::reshape<30>(x{}));
#else
using y = decltype(sw::reshape<32>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A product whose inner extents differ.
// expect: matmul: the contracted dims have different extents
// expect: where<shardwise::op::einsum, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>, shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?> ?>
// expect(text): operation: einsum; operands: float[4, 8] (tp: replicate), float[4, 8] (tp: replicate); mesh: "tp" of 2; dim: 1; extent: 8; other extent: 4

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<4, 8>, mesh>;
#else
using b = typed<float, sw::shape<8, 4>, mesh>;
#endif
using c = decltype(sw::matmul(a{}, b{}));

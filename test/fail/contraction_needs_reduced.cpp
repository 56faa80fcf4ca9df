// SPDX-License-Identifier: Apache-2.0
// Sharded rows times a replicate matrix, whose gradient would miss a sum.
// expect: matmul: one operand is sharded on a free dim and the other is replicate on that axis, so its gradient would silently miss a sum
// expect: where<shardwise::op::einsum, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>, shardwise::operand<float, shardwise::shape<8L?, 6L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<8, 6>, mesh>;
#else
using b = typed<float, sw::shape<8, 6>, mesh, sw::on<tp, sw::reduced>>;
#endif
using c = decltype(sw::matmul(a{}, b{}));

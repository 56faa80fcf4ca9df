// SPDX-License-Identifier: Apache-2.0
// A replicate bias is added to an activation sharded by rows: its gradient would miss a sum.
// expect: pointwise: one operand is sharded on a mesh axis and the other, which is broadcast along that dim, is replicate there, so its gradient would silently miss a sum
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>, shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using bias = typed<float, sw::shape<8>, mesh>;
#else
using bias = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::reduced>>;
#endif
using y = decltype(x{} + bias{});

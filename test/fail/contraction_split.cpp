// SPDX-License-Identifier: Apache-2.0
// Both operands are sharded on the contracted dim, one by heads and the other by elements.
// expect: matmul: both operands are sharded on one dim with different split boundaries
// expect: where<shardwise::op::einsum, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 64L?>, shardwise::shard<1, 32L?> ?>, shardwise::operand<float, shardwise::shape<64L?, 6L?>, shardwise::shard<0(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<3> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 64>, mesh, sw::on<tp, sw::shard<1, 16>>>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<64, 6>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using b = typed<float, sw::shape<64, 6>, mesh, sw::on<tp, sw::shard<0, 16>>>;
#endif
using c = decltype(sw::matmul(a{}, b{}));

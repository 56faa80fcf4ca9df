// SPDX-License-Identifier: Apache-2.0
// The contracted dim of a product is sharded in one operand only.
// expect: matmul: one operand is sharded on its contracting dim and the other is not
// expect: where<shardwise::op::einsum, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<1(, 1L?)?> ?>, shardwise::operand<float, shardwise::shape<8L?, 6L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<8, 6>, mesh>;
#else
using b = typed<float, sw::shape<8, 6>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using c = decltype(sw::matmul(a{}, b{}));

// SPDX-License-Identifier: Apache-2.0
// The operands of an addition are sharded along different dims.
// expect: pointwise: the operands are placed differently on a mesh axis
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>, shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<1(, 1L?)?> ?> ?>
// expect(text): operation: add; operands: float[4, 8] (tp: shard<0>), float[4, 8] (tp: shard<1>); mesh: "tp" of 2; axis: "tp" of 2

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using y = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#else
using y = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using z = decltype(x{} + y{});

// SPDX-License-Identifier: Apache-2.0
// The operands of an addition are sharded along one dim with different boundaries.
// expect: pointwise: the operands are placed differently on a mesh axis
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<64L?>, shardwise::shard<0, 32L?> ?>, shardwise::operand<float, shardwise::shape<64L?>, shardwise::shard<0(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<3> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<64>, mesh, sw::on<tp, sw::shard<0, 16>>>;
#ifdef SHARDWISE_FAIL
using y = typed<float, sw::shape<64>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using y = typed<float, sw::shape<64>, mesh, sw::on<tp, sw::shard<0, 16>>>;
#endif
using z = decltype(x{} + y{});

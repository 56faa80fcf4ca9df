// SPDX-License-Identifier: Apache-2.0
// A dim that is sharded by columns is merged into one with the rows before it.
// expect: reshape: a sharded dim is merged or split so that the new dims would cut across shard boundaries
// expect: where<shardwise::op::reshape, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 6L?>, shardwise::shard<1(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 6>, mesh, sw::on<tp, sw::shard<1>>>;
#else
using x = typed<float, sw::shape<4, 6>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using y = decltype(sw::reshape<24>(x{}));

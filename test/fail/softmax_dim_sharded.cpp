// SPDX-License-Identifier: Apache-2.0
// A softmax over a sharded dim.
// expect: softmax: the dim that softmax normalises over is sharded
// expect: where<shardwise::op::softmax, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<1(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using y = decltype(sw::softmax(x{}));

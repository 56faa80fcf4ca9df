// SPDX-License-Identifier: Apache-2.0
// A slice of a sharded dim.
// expect: slice: the sliced dim is sharded
// expect: where<shardwise::op::slice, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::slice<0, 0, 2>(x{}));
#else
using y = decltype(sw::slice<1, 0, 2>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A matrix is redistributed to shards of its third dim.
// expect: placement: shard<d> names a dim that the tensor does not have
// expect: where<shardwise::op::redistribute, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<tp, sw::shard<2>>(x{}));
#else
using y = decltype(sw::redistribute<tp, sw::shard<-1>>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A join along a sharded dim.
// expect: cat: an operand is sharded on the dim that is joined
// expect: where<shardwise::op::cat,

#include <shardwise/graph/functions/joins.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::cat<0>(real<sw::shape<4, 8>, sw::shard<0>>{}, real<sw::shape<4, 8>, sw::shard<0>>{}));
#else
using y = decltype(sw::cat<1>(real<sw::shape<4, 8>, sw::shard<0>>{}, real<sw::shape<4, 8>, sw::shard<0>>{}));
#endif

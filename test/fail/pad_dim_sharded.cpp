// SPDX-License-Identifier: Apache-2.0
// A sharded dim padded.
// expect: constant_pad: the padded dim is sharded
// expect: where<shardwise::op::constant_pad,

#include <shardwise/graph/functions/fills.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::constant_pad<1, 1>(real<sw::shape<4, 8>, sw::shard<1>>{}));
#else
using y = decltype(sw::constant_pad<1, 1>(real<sw::shape<4, 8>, sw::shard<0>>{}));
#endif

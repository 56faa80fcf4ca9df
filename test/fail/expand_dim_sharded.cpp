// SPDX-License-Identifier: Apache-2.0
// A sharded dim of extent 1 made longer.
// expect: expand: a dim of extent 1 that is sharded would be made longer
// expect: where<shardwise::op::broadcast,

#include <shardwise/graph/functions/views.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::expand<4, 8>(real<sw::shape<1, 8>, sw::shard<0>>{}));
#else
using y = decltype(sw::expand<4, 8>(real<sw::shape<1, 8>, sw::shard<1>>{}));
#endif

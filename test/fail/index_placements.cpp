// SPDX-License-Identifier: Apache-2.0
// A sharded index into a replicate tensor, whose gradient would miss a sum.
// expect: indexing: no rule admits these placements on a mesh axis
// expect: where<shardwise::op::index_select,

#include <shardwise/graph/functions/indexing.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::index_select<0>(real<sw::shape<4, 8>>{}, ids<sw::shape<4>, sw::shard<0>>{}));
#else
using y = decltype(sw::index_select<0>(real<sw::shape<4, 8>, sw::reduced>{}, ids<sw::shape<4>, sw::shard<0>>{}));
#endif

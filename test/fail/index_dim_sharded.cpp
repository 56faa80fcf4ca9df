// SPDX-License-Identifier: Apache-2.0
// Rows selected from a table whose rows are sharded.
// expect: indexing: the indexed dim is sharded, and an index may name an element of any rank
// expect: where<shardwise::op::index_select,

#include <shardwise/graph/functions/indexing.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::index_select<0>(real<sw::shape<4, 8>, sw::shard<0>>{}, ids<sw::shape<3>>{}));
#else
using y = decltype(sw::index_select<0>(real<sw::shape<4, 8>, sw::shard<1>>{}, ids<sw::shape<3>>{}));
#endif

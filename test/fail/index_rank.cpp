// SPDX-License-Identifier: Apache-2.0
// An index of rank 2 where rows are selected.
// expect: index_select: the index must have rank 1
// expect: where<shardwise::op::index_select,

#include <shardwise/graph/functions/indexing.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::index_select<0>(real<sw::shape<4, 8>>{}, ids<sw::shape<4, 3>>{}));
#else
using y = decltype(sw::index_select<0>(real<sw::shape<4, 8>>{}, ids<sw::shape<3>>{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// An index of another rank.
// expect: indexing: the operands' extents do not fit
// expect: where<shardwise::op::gather,

#include <shardwise/graph/indexing.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::gather<1>(real<sw::shape<4, 8>>{}, ids<sw::shape<3>>{}));
#else
using y = decltype(sw::gather<1>(real<sw::shape<4, 8>>{}, ids<sw::shape<4, 3>>{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A dim of extent 4 made 8 long.
// expect: expand: only dims of extent 1, and new ones in front, can be made longer
// expect: where<shardwise::op::broadcast,

#include <shardwise/graph/functions/views.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::expand<8, 8>(real<sw::shape<4, 8>>{}));
#else
using y = decltype(sw::expand<8, 4, 8>(real<sw::shape<4, 8>>{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A join along a dim whose extent is known at run time.
// expect: a dim with run-time extent (dyn) would be joined, padded, indexed or expanded
// expect: where<shardwise::op::cat,

#include <shardwise/graph/functions/joins.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::cat<0>(real<sw::shape<sw::dyn<8>, 8>>{}, real<sw::shape<sw::dyn<8>, 8>>{}));
#else
using y = decltype(sw::cat<1>(real<sw::shape<sw::dyn<8>, 8>>{}, real<sw::shape<sw::dyn<8>, 8>>{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A negative number of elements.
// expect: constant_pad: a number of elements is negative, or there are more than two for each dim

#include <shardwise/graph/functions/fills.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::constant_pad<1, -1>(real<sw::shape<4, 8>>{}));
#else
using y = decltype(sw::constant_pad<1, 1>(real<sw::shape<4, 8>>{}));
#endif

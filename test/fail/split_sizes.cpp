// SPDX-License-Identifier: Apache-2.0
// Sizes that leave a part of the dim over.
// expect: split: the sizes do not add up to the dim's extent, or one is negative

#include <shardwise/graph/functions/joins.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::split<1, 4, 3>(real<sw::shape<4, 8>>{}));
#else
using y = decltype(sw::split<1, 4, 3, 1>(real<sw::shape<4, 8>>{}));
#endif

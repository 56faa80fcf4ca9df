// SPDX-License-Identifier: Apache-2.0
// Random numbers in a partial tensor.
// expect: random: random numbers are asked for in a partial tensor

#include <shardwise/graph/functions/fills.hpp>

#include "typed_tp.hpp"

#ifdef SHARDWISE_FAIL
using y = decltype(sw::rand_like(real<sw::shape<4, 8>, sw::partial<>>{}));
#else
using y = decltype(sw::rand_like(real<sw::shape<4, 8>, sw::reduced>{}));
#endif

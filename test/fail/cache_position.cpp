// SPDX-License-Identifier: Apache-2.0
// One position for a batch of sequences.
// expect: cache: the position is one int32 for each sequence

#include <shardwise/graph/functions/cache.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using cache = typed<float, sw::shape<2, 8, 4, 16>, mesh>;
using rows = typed<float, sw::shape<2, 1, 4, 16>, mesh>;
#ifdef SHARDWISE_FAIL
using position = typed<std::int32_t, sw::shape<1>, mesh>;
#else
using position = typed<std::int32_t, sw::shape<2>, mesh>;
#endif
using y = decltype(sw::cache_update<1>(cache{}, rows{}, position{}));

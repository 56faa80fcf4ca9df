// SPDX-License-Identifier: Apache-2.0
// A prompt that is longer than the cache.
// expect: cache: the new rows do not fit the cache

#include <shardwise/graph/functions/cache.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using cache = typed<float, sw::shape<2, 8, 4, 16>, mesh>;
using position = typed<std::int32_t, sw::shape<2>, mesh>;
#ifdef SHARDWISE_FAIL
using rows = typed<float, sw::shape<2, 9, 4, 16>, mesh>;
#else
using rows = typed<float, sw::shape<2, 5, 4, 16>, mesh>;
#endif
using y = decltype(sw::cache_update<1>(cache{}, rows{}, position{}));

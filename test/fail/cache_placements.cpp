// SPDX-License-Identifier: Apache-2.0
// A cache whose positions are cut.
// expect: cache: no rule admits these placements

#include <shardwise/graph/functions/cache.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using position = typed<std::int32_t, sw::shape<2>, mesh>;
#ifdef SHARDWISE_FAIL
using cut = sw::on<tp, sw::shard<1>>;
#else
using cut = sw::on<tp, sw::shard<2>>;
#endif
using cache = typed<float, sw::shape<2, 8, 4, 16>, mesh, cut>;
using rows = typed<float, sw::shape<2, 2, 4, 16>, mesh, cut>;
using y = decltype(sw::cache_update<1>(cache{}, rows{}, position{}));

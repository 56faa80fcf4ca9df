// SPDX-License-Identifier: Apache-2.0
// Queries of a cache that would see what comes after them.
// expect: cached_attention: a query of a cache sees what came before it

#include <shardwise/graph/functions/cache.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using keys = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
using q = typed<float, sw::shape<2, 4, 1, 16>, mesh>;
using position = typed<std::int32_t, sw::shape<2>, mesh>;
#ifdef SHARDWISE_FAIL
inline constexpr sw::attention_options options{.causal = false};
#else
inline constexpr sw::attention_options options{.window = 4};
#endif
using y = decltype(sw::cached_attention<options>(q{}, keys{}, keys{}, position{}));

// SPDX-License-Identifier: Apache-2.0
// A mask (batch, time of keys) of queries and keys, which broadcasts as (time of queries, time of keys).
// expect: scaled_dot_product_attention: the bias or mask does not broadcast to

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using q = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
#ifdef SHARDWISE_FAIL
using mask = typed<std::int32_t, sw::shape<2, 8>, mesh>;
#else
using mask = typed<std::int32_t, sw::shape<2, 1, 1, 8>, mesh>;
#endif
using y = decltype(sw::scaled_dot_product_attention(q{}, q{}, q{}, mask{}));

// SPDX-License-Identifier: Apache-2.0
// Queries in (batch, time, heads, size), keys and values in (batch, heads, time, size).
// expect: scaled_dot_product_attention: queries, keys and values do not fit
// expect: head_layout::bthd
// expect(g++): shape<2, 8, 4, 16>
// expect(clang): shape<2, 8, 4, 16>

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using q = typed<float, sw::shape<2, 8, 4, 16>, mesh>;
#else
using q = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
#endif
using k = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
using y = decltype(sw::scaled_dot_product_attention(q{}, k{}, k{}));

// SPDX-License-Identifier: Apache-2.0
// Keys cut along their time, as queries are: every query has to see all of them.
// expect: scaled_dot_product_attention: no rule admits these placements on a mesh axis

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct cp : sw::axis<2> {};
using mesh = sw::mesh<cp>;
using q = typed<float, sw::shape<2, 4, 8, 16>, mesh, sw::on<cp, sw::shard<2>>>;
#ifdef SHARDWISE_FAIL
using k = q;
#else
using k = typed<float, sw::shape<2, 4, 8, 16>, mesh, sw::on<cp, sw::reduced>>;
#endif
using y = decltype(sw::scaled_dot_product_attention(q{}, k{}, k{}));

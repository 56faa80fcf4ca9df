// SPDX-License-Identifier: Apache-2.0
// Two groups of three heads over three ranks: a rank would have parts of both.
// expect: scaled_dot_product_attention: the heads are cut through a group

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<3> {};
using mesh = sw::mesh<tp>;
using by_heads = sw::on<tp, sw::shard<1>>;
using q = typed<float, sw::shape<2, 6, 8, 16>, mesh, by_heads>;
#ifdef SHARDWISE_FAIL
using k = typed<float, sw::shape<2, 2, 8, 16>, mesh, by_heads>;
#else
using k = typed<float, sw::shape<2, 3, 8, 16>, mesh, by_heads>;
#endif
using y = decltype(sw::scaled_dot_product_attention<sw::attention_options{.enable_gqa = true}>(q{}, k{}, k{}));

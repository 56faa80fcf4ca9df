// SPDX-License-Identifier: Apache-2.0
// Attention divides by the root of the heads' size, which must be known while compiling.
// expect: scaled_dot_product_attention: the heads' size has a run-time extent

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using q = typed<float, sw::shape<2, 4, 8, sw::dyn<8>>, mesh>;
#else
using q = typed<float, sw::shape<2, 4, sw::dyn<8>, 8>, mesh>;
#endif
using y = decltype(sw::scaled_dot_product_attention(q{}, q{}, q{}));

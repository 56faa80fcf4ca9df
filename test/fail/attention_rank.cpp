// SPDX-License-Identifier: Apache-2.0
// Attention over tensors without a dim for the heads.
// expect: matmul: an operand has the wrong number of dims
// expect: shardwise::operand<float, shardwise::shape<2L?, 8L?, 16L?>, shardwise::replicate ?>

#include <shardwise/graph/functions/attention.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 8, 16>, mesh>;
#else
using x = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
#endif
using y = decltype(sw::scaled_dot_product_attention(x{}, x{}, x{}));

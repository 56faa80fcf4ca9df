// SPDX-License-Identifier: Apache-2.0
// A reshape to nine dims.
// expect: tensor: the rank exceeds 8
// expect: shardwise::operand<float, shardwise::shape<8L?, 8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<8, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::reshape<2, 2, 2, 2, 2, 2, 1, 1, 1>(x{}));
#else
using y = decltype(sw::reshape<2, 2, 2, 2, 2, 2, 1, 1>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A reshape of nothing to extents whose product no 64 bits count.
// expect: tensor: its elements take more bytes than 2\^60
// expect: shardwise::operand<float, shardwise::shape<0L?, 8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<0, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::reshape<4294967296, 0, 4294967296>(x{}));
#else
using y = decltype(sw::reshape<4294967296, 0, 16777216>(x{}));
#endif

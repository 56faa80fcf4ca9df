// SPDX-License-Identifier: Apache-2.0
// A reshape to six dims.
// expect: tensor: the rank exceeds 5
// expect: shardwise::operand<float, shardwise::shape<8L?, 8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<8, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::reshape<2, 2, 2, 2, 2, 2>(x{}));
#else
using y = decltype(sw::reshape<2, 2, 2, 2, 4>(x{}));
#endif

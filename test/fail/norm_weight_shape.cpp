// SPDX-License-Identifier: Apache-2.0
// A norm whose weight has too few features.
// expect: norm: weight and bias must have rank 1 and the extent of the last dim of the input
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>.*shardwise::operand<float, shardwise::shape<4L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using weight = typed<float, sw::shape<4>, mesh>;
#else
using weight = typed<float, sw::shape<8>, mesh>;
#endif
using y = decltype(sw::rms_norm(x{}, weight{}));

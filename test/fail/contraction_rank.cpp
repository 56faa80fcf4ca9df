// SPDX-License-Identifier: Apache-2.0
// A matrix times a vector.
// expect: matmul: an operand has the wrong number of dims
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>, shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<8>, mesh>;
#else
using b = typed<float, sw::shape<8, 1>, mesh>;
#endif
using c = decltype(sw::matmul(a{}, b{}));

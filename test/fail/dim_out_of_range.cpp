// SPDX-License-Identifier: Apache-2.0
// A sum over a dim that the tensor does not have.
// expect: the dim is out of range
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::sum<2>(x{}));
#else
using y = decltype(sw::sum<-1>(x{}));
#endif

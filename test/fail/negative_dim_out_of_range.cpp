// SPDX-License-Identifier: Apache-2.0
// A mean over a dim before the first.
// expect: the dim is out of range
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::mean<-3>(x{}));
#else
using y = decltype(sw::mean<-2>(x{}));
#endif

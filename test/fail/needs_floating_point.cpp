// SPDX-License-Identifier: Apache-2.0
// An activation of integers.
// expect: this operation needs floating-point elements
// expect: where<shardwise::op::relu, (shardwise::mesh<.*?>|mesh), shardwise::operand<int(32_t)?, shardwise::shape<4L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<std::int32_t, sw::shape<4>, mesh>;
#else
using x = typed<float, sw::shape<4>, mesh>;
#endif
using y = decltype(sw::relu(x{}));

// SPDX-License-Identifier: Apache-2.0
// A partial value times a replicate one: the factor must be reduced, since its gradient is a sum.
// expect: pointwise: the operands are placed differently on a mesh axis
// expect: where<shardwise::op::mul, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?>, shardwise::partial<.*?> ?>, shardwise::operand<float, shardwise::shape<4L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4>, mesh, sw::on<tp, sw::partial<>>>;
#ifdef SHARDWISE_FAIL
using y = typed<float, sw::shape<4>, mesh>;
#else
using y = typed<float, sw::shape<4>, mesh, sw::on<tp, sw::reduced>>;
#endif
using z = decltype(x{} * y{});

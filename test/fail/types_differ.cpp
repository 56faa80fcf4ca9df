// SPDX-License-Identifier: Apache-2.0
// Float plus double.
// expect: operands have different element types
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?>, shardwise::replicate ?>, shardwise::operand<double, shardwise::shape<4L?>, shardwise::replicate ?> ?>
// expect(text): operation: add; operands: float[4] (tp: replicate), double[4] (tp: replicate); mesh: "tp" of 2

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4>, mesh>;
#ifdef SHARDWISE_FAIL
using y = typed<double, sw::shape<4>, mesh>;
#else
using y = typed<float, sw::shape<4>, mesh>;
#endif
using z = decltype(x{} + y{});

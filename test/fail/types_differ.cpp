// SPDX-License-Identifier: Apache-2.0
// Float plus double.
// expect: operands have different element types
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::(detail::)?typed_operand<float, shardwise::operand<shardwise::shape<4L?>, shardwise::replicate ?> ?>, shardwise::(detail::)?typed_operand<double, shardwise::operand<shardwise::shape<4L?>, shardwise::replicate ?> ?> ?>

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

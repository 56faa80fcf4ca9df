// SPDX-License-Identifier: Apache-2.0
// A softmax of a value that is not summed yet.
// expect: a partial (not yet summed) value enters an operation that is not linear in it, so the result would be wrong
// expect: where<shardwise::op::softmax, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::partial<.*?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using y = decltype(sw::softmax(x{}));

// SPDX-License-Identifier: Apache-2.0
// A replicate bias is added to partial sums, once per rank.
// expect: add: one operand is partial on a mesh axis and the other is not, so it would be added once per rank
// expect: where<shardwise::op::add, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::partial<.*?> ?>, shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using bias = typed<float, sw::shape<8>, mesh>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using y = decltype(x{} + bias{});

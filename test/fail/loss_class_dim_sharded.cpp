// SPDX-License-Identifier: Apache-2.0
// A cross entropy over sharded classes.
// expect: cross entropy: the class dim of the logits is sharded
// expect: where<shardwise::op::lse, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 10L?>, shardwise::shard<1(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using target = typed<std::int32_t, sw::shape<4>, mesh>;
#ifdef SHARDWISE_FAIL
using logits = typed<float, sw::shape<4, 10>, mesh, sw::on<tp, sw::shard<1>>>;
#else
using logits = typed<float, sw::shape<4, 10>, mesh>;
#endif
using loss = decltype(sw::cross_entropy(logits{}, target{}));

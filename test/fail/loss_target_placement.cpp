// SPDX-License-Identifier: Apache-2.0
// A cross entropy of sharded rows with replicate targets.
// expect: cross entropy: logits and targets are placed differently on a mesh axis
// expect: shardwise::operand<float, shardwise::shape<4L?, 10L?>, shardwise::shard<0(, 1L?)?> ?>.*shardwise::operand<int(32_t)?, shardwise::shape<4L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using logits = typed<float, sw::shape<4, 10>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using target = typed<std::int32_t, sw::shape<4>, mesh>;
#else
using target = typed<std::int32_t, sw::shape<4>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using loss = decltype(sw::cross_entropy(logits{}, target{}));

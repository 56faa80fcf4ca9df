// SPDX-License-Identifier: Apache-2.0
// A norm of sharded rows whose weight is replicate: its gradient would miss a sum.
// expect: norm: the input is sharded on a mesh axis while weight or bias is not reduced there, so their gradient would silently miss a sum
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>.*shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using weight = typed<float, sw::shape<8>, mesh>;
#else
using weight = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::reduced>>;
#endif
using y = decltype(sw::layer_norm(x{}, weight{}, weight{}));

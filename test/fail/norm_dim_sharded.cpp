// SPDX-License-Identifier: Apache-2.0
// A norm over a sharded dim.
// expect: norm: the normalised (last) dim is sharded
// expect: where<shardwise::op::norm_stats, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<1(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using weight = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::reduced>>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using y = decltype(sw::layer_norm(x{}, weight{}, weight{}));

// SPDX-License-Identifier: Apache-2.0
// A redistribution asks for an even split of ten rows over four ranks.
// expect: placement: even<shard<d>> needs an extent that the mesh axis divides
// expect: shardwise::on<tp, shardwise::even<shardwise::shard<0(, 1L?)?> ?> ?>
// expect: shardwise::operand<float, shardwise::shape<10L?, 8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<4> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<10, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<tp, sw::even<sw::shard<0>>>(x{}));
#else
using y = decltype(sw::redistribute<tp, sw::even<sw::shard<1>>>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// The outer of two axes that shard one dim is gathered before the inner one.
// expect: redistribute: another mesh axis splits what this one leaves of the dim
// expect: where<shardwise::op::redistribute, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<8L?>, shardwise::shard<0(, 1L?)?>, shardwise::shard<0(, 1L?)?> ?> ?>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<8>, mesh, sw::on<dp, sw::shard<0>>, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<dp, sw::replicate>(x{}));
#else
using y = decltype(sw::redistribute<dp, sw::replicate>(sw::redistribute<tp, sw::replicate>(x{})));
#endif

// SPDX-License-Identifier: Apache-2.0
// A shard becomes a share of a sum beside another axis that moves.
// expect: redistribute: a shard would become partial, but ranks have no shares of what they do not hold
// expect: shardwise::on<tp, shardwise::partial<

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::replicate, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<sw::on<dp, sw::shard<1>>, sw::on<tp, sw::partial<>>>(x{}));
#else
using y = decltype(sw::redistribute<sw::on<dp, sw::partial<>>, sw::on<tp, sw::shard<1>>>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A search along a sharded dim.
// expect: topk, argmax, argmin: the dim that is searched is sharded

#include "typed.hpp"

#include <shardwise/graph/functions/ranking_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
using y = decltype(sw::argmax<0>(x{}));

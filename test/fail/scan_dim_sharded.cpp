// SPDX-License-Identifier: Apache-2.0
// A running sum along a sharded dim.
// expect: cumsum: the dim is sharded

#include <shardwise/graph/functions/rearrange.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using y = decltype(sw::cumsum<-1>(x{}));

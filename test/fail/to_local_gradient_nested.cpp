// SPDX-License-Identifier: Apache-2.0
// The gradient of a local tensor is said to be split by an axis before one that splits the dim already.
// expect: of a whole or partial one it is replicate, reduced, partial<> or a shard of one of its dims that splits it after all other axes do

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<8, 3>, mesh, sw::replicate, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using gradient = sw::grad<sw::shard<0>, sw::shard<0>>;
#else
using gradient = sw::grad<sw::strided_shard<0, 2>, sw::shard<0>>;
#endif
using y = decltype(sw::to_local<gradient>(x{}));

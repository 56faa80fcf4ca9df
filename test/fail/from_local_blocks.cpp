// SPDX-License-Identifier: Apache-2.0
// Blocks of 129 and 128 rows put together without a shape.
// expect: from_local: the ranks' blocks are not those of the tensor declared here

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<257>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::from_local<sw::shard<0>>(x{}));
#else
using y = decltype(sw::from_local<sw::shape<257>, sw::shard<0>>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// pytorch#144109: blocks of 3 and 2 rows, put together as if they were equal.
// expect: from_local: the ranks' blocks are not those of the tensor declared here

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<5, 4>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::from_local<sw::shard<0>>(x{}));
#else
using y = decltype(sw::from_local<sw::shape<5, 4>, sw::shard<0>>(x{}));
#endif

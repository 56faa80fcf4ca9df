// SPDX-License-Identifier: Apache-2.0
// pytorch#149764, pytorch#161950: a flatten across the boundaries of shards.
// expect: reshape: a sharded dim is merged or split so that the new dims would cut across shard boundaries

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 6, 4>, mesh, sw::shard<1>>;
#else
using x = typed<float, sw::shape<2, 6, 4>, mesh, sw::shard<0>>;
#endif
using y = decltype(sw::reshape<12, 4>(x{}));

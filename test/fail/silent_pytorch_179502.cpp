// SPDX-License-Identifier: Apache-2.0
// pytorch#179502: 12 x 8, sharded by columns, viewed as 16 x 6.
// expect: reshape: a sharded dim is merged or split so that the new dims would cut across shard boundaries

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<12, 8>, mesh, sw::shard<1>>;
#else
using x = typed<float, sw::shape<12, 8>, mesh, sw::shard<0>>;
#endif
using y = decltype(sw::reshape<16, 6>(x{}));

// SPDX-License-Identifier: Apache-2.0
// Two placements claimed on a mesh of one axis: kept as a claim, refused as a tensor.
// expect: placement: the number of placements differs from the number of mesh axes

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<128, 32>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::from_local_unchecked<sw::shape<128, 32>, sw::replicate, sw::shard<0>>(x{}).checked());
#else
using y = decltype(sw::from_local_unchecked<sw::shape<128, 32>, sw::replicate, sw::shard<0>>(x{}));
#endif

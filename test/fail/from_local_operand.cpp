// SPDX-License-Identifier: Apache-2.0
// A tensor that is whole on an axis taken for blocks.
// expect: from_local: the operand is not local

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4>, mesh>;
#else
using x = typed<float, sw::shape<4>, mesh, sw::shard<0>>;
#endif
using y = decltype(sw::from_local<sw::replicate>(x{}));

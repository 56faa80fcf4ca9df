// SPDX-License-Identifier: Apache-2.0
// A redistribution that names a placement and no axis.
// expect: redistribute: no placement to go to is named, or none for a mesh axis
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>, shardwise::replicate

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<sw::replicate>(x{}));
#else
using y = decltype(sw::redistribute<sw::on<tp, sw::replicate>>(x{}));
#endif
static_assert(y::sp.rank == 2);

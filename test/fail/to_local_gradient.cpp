// SPDX-License-Identifier: Apache-2.0
// The gradient of a sharded tensor said to be replicate.
// expect: to_local: the gradient placement does not fit the tensor's
// expect: shardwise::grad<shardwise::replicate ?>

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using y = decltype(sw::to_local<sw::grad<sw::replicate>>(x{}));

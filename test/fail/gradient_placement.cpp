// SPDX-License-Identifier: Apache-2.0
// An optimizer step whose parameter is sharded and whose gradient is not.
// expect: optimizer: parameter and gradient are sharded differently
// expect: shardwise::operand<float, shardwise::shape<8L?>, shardwise::shard<0(, 1L?)?> ?>, shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?>

#include <shardwise/module/optimizer.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using weight = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using gradient = typed<float, sw::shape<8>, mesh>;
#else
using gradient = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
constexpr bool ok = sw::checked_update<weight, gradient>::ok;

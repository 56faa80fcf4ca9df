// SPDX-License-Identifier: Apache-2.0
// A parallel loss of logits whose rows, not classes, are sharded.
// expect: loss_parallel_cross_entropy: the logits are not sharded along their last (class) dim on this mesh axis

#include "typed.hpp"

#include <shardwise/graph/functions/loss_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using logits = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using logits = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
using target = typed<std::int32_t, sw::shape<4>, mesh>;
using loss = decltype(sw::loss_parallel_cross_entropy<tp>(logits{}, target{}));

// SPDX-License-Identifier: Apache-2.0
// pytorch/torchtitan#4245: a replicate bias after a row-wise product that is not summed yet, counted once per rank.
// expect: add: one operand is partial on a mesh axis and the other is not, so it would be added once per rank

#include "typed.hpp"

struct tp : sw::axis<4> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<1>>;
using weight = typed<float, sw::shape<6, 8>, mesh, sw::shard<1>>;
using bias = typed<float, sw::shape<6>, mesh>;
using product = decltype(sw::linear_product(x{}, weight{}));
#ifdef SHARDWISE_FAIL
using y = decltype(product{} + bias{});
#else
using y = decltype(sw::redistribute<tp, sw::replicate>(product{}) + bias{});
#endif

// SPDX-License-Identifier: Apache-2.0
// An optimizer step on a gradient that is not summed yet.
// expect: optimizer: the gradient is still partial on a mesh axis, so every rank would take a different step
// expect: shardwise::operand<float, shardwise::shape<8L?>, shardwise::reduced ?>, shardwise::operand<float, shardwise::shape<8L?>, shardwise::partial<.*?> ?>

#include <shardwise/module/optimizer.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using weight = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::reduced>>;
using gradient = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::partial<>>>;
#ifdef SHARDWISE_FAIL
using used = gradient;
#else
using used = decltype(sw::reduce_gradient<tp>(gradient{}));
#endif
constexpr bool ok = sw::checked_update<weight, used>::ok;

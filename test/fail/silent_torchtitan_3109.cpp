// SPDX-License-Identifier: Apache-2.0
// pytorch/torchtitan#3109: values scaled by the largest magnitude of a rank's own shard.
// expect: a partial (not yet summed) value enters an operation that is not linear in it

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/graph/functions/reduction_functions.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<1>>;
using largest = decltype(sw::max(sw::abs(x{})));
#ifdef SHARDWISE_FAIL
using y = decltype(x{} / largest{});
#else
using y = decltype(x{} / sw::redistribute<tp, sw::reduced>(largest{}));
#endif

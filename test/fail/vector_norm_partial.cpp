// SPDX-License-Identifier: Apache-2.0
// The norm of summands: not linear.
// expect: a partial \(not yet summed\) value enters an operation that is not linear in it
// expect: where<shardwise::op::vector_norm

#include "typed.hpp"

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using placed = sw::partial<>;
#else
using placed = sw::shard<1>;
#endif
using y = decltype(sw::vector_norm<2, 1>(typed<float, sw::shape<4, 3>, sw::mesh<dp>, placed>{}));

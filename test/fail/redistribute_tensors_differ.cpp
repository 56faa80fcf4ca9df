// SPDX-License-Identifier: Apache-2.0
// The price of a redistribution between tensors of different shapes.
// expect: redistribution: the two tensors have different extents or element types
// expect: shardwise::operand<float, shardwise::shape<8L?, 4L?>, shardwise::replicate, shardwise::replicate ?>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::shard<0>, sw::replicate>;
#ifdef SHARDWISE_FAIL
using y = sw::redistribution<x, typed<float, sw::shape<8, 4>, mesh>>;
#else
using y = sw::redistribution<x, typed<float, sw::shape<4, 8>, mesh>>;
#endif
constexpr auto bytes = y::bytes;

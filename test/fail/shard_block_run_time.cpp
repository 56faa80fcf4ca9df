// SPDX-License-Identifier: Apache-2.0
// A block of a run-time length in an extent that does not scale with it.
// expect: placement: shard<d, block> needs a block that divides the extent of dim d
#include <shardwise/core.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using rows = sw::shape<64>;
#else
using rows = sw::shape<sw::dyn<64, 1>>;
#endif
static_assert(sw::spec_of<float, rows, sw::mesh<dp>, sw::on<dp, sw::shard<0, sw::dyn<64, 1>>>>::value.axes == 1);

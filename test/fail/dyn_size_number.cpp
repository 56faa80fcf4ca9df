// SPDX-License-Identifier: Apache-2.0
// A fifth run-time size.
// expect: dyn: the bound of a run-time extent is from 2 to 2^48 - 1, and the number of its size from 0 to 3
// expect(types): dyn_size<4>
// expect(text): bound: 64; largest bound: 281474976710655; size: 4
#include <shardwise/core.hpp>

namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
using x = sw::shape<sw::dyn<64, 4>, 4>;
#else
using x = sw::shape<sw::dyn<64, 3>, 4>;
#endif
static_assert(x::rank == 2);

// SPDX-License-Identifier: Apache-2.0
// A run-time extent of at most one element: whether the dim broadcasts would depend on the run.
// expect: dyn: the bound of a run-time extent is from 2 to 2^48 - 1
// expect(types): have<1(LL?)?>
// expect(text): bound: 1; largest bound: 281474976710655; size: 0
#include <shardwise/core.hpp>

namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
using x = sw::shape<sw::dyn<1>, 4>;
#else
using x = sw::shape<sw::dyn<2>, 4>;
#endif
static_assert(x::rank == 2);

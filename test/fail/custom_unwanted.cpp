// SPDX-License-Identifier: Apache-2.0
// A kernel that writes a result which nobody wants: its proof is no constant.
// expect(g++): is not a constant expression
// expect(clang): must be initialized by a constant expression
// expect(nvcc): must have a constant value

#include <custom_results.hpp>
#include <shardwise/laws/cases.hpp>

#ifdef SHARDWISE_FAIL
using proved = shardwise::laws::customs<described::forgetful>;
#else
using proved = shardwise::laws::customs<described::lines>;
#endif
static_assert(shardwise::laws::holds<proved, shardwise::shape<5, 3>> > 0);

// SPDX-License-Identifier: Apache-2.0
// A strided shard whose factor is not the size of the later axis that splits its dim.
// expect: placement: the factor of strided_shard<d, factor> is not the product of the sizes of later mesh axes
// expect: shardwise::strided_shard<0, 2>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<4> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<16>, mesh, sw::strided_shard<0, 2>, sw::shard<0>>;
#else
using x = typed<float, sw::shape<16>, mesh, sw::strided_shard<0, 4>, sw::shard<0>>;
#endif
constexpr auto bytes = sizeof(x);

// SPDX-License-Identifier: Apache-2.0
// NVIDIA/physicsnemo#1943: two tensors sharded along one dim with different boundaries are added.
// expect: pointwise: the operands are placed differently on a mesh axis

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<12>, mesh, sw::shard<0>>;  // 6 and 6
#ifdef SHARDWISE_FAIL
using y = typed<float, sw::shape<12>, mesh, sw::shard<0, 4>>;  // 8 and 4
#else
using y = typed<float, sw::shape<12>, mesh, sw::shard<0, 3>>;  // 6 and 6
#endif
using z = decltype(x{} + y{});

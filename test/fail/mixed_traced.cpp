// SPDX-License-Identifier: Apache-2.0
// A function that is traced uses an eager tensor from outside.
// expect: operands are no tensors of one kind: a tensor meets a plain value, or an eager tensor meets one that is being traced
// expect: shardwise::operand<float, shardwise::shape<4L?>, shardwise::shard<0(, 1L?)?> ?>

#include <shardwise/runtime/eager/dtensor.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using traced = typed<float, sw::shape<4>, mesh, sw::shard<0>>;
using eager = sw::dtensor_of<float, sw::shape<4>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using offset = eager;
#else
using offset = traced;
#endif
using y = decltype(sw::add(std::declval<const traced&>(), std::declval<const offset&>()));

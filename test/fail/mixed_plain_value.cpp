// SPDX-License-Identifier: Apache-2.0
// Numbers of the host are added to a distributed tensor.
// expect: operands are no tensors of one kind: a tensor meets a plain value, or an eager tensor meets one that is being traced
// expect(text): float[4] (tp: shard<0>)
// expect(text): std::array<float, 4>

#include <array>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using offset = std::array<float, 4>;
#else
using offset = x;
#endif
using y = decltype(x{} + offset{});

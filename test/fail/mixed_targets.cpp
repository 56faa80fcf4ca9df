// SPDX-License-Identifier: Apache-2.0
// The classes that a loss is to find are numbers of the host.
// expect: operands are no tensors of one kind: a tensor meets a plain value, or an eager tensor meets one that is being traced

#include <array>
#include <cstdint>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using logits = typed<float, sw::shape<4, 8>, mesh, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using classes = std::array<std::int32_t, 4>;
#else
using classes = typed<std::int32_t, sw::shape<4>, mesh, sw::shard<0>>;
#endif
using y = decltype(sw::cross_entropy(logits{}, classes{}));

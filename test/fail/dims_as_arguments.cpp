// SPDX-License-Identifier: Apache-2.0
// A dim as a function argument, as in PyTorch.
// expect: tensor: dims, extents and counts are template arguments
// expect: softmax<-1>(x)
// expect(text): operand: float[4, 4] (
// expect(text): given: std::int32_t

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 4>, sw::mesh<tp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::softmax(x{}, -1));
#else
using y = decltype(sw::softmax<-1>(x{}));
#endif

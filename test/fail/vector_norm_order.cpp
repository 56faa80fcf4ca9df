// SPDX-License-Identifier: Apache-2.0
// The norm of order 0, which only counts.
// expect: norm: partial_norm<P> and vector_norm<P> need an order P from 1 to 32767
// expect(text): operation: vector_norm; operand: float[4, 3] (dp: replicate); mesh: "dp" of 2; order: 0; least order: 1

#include "typed.hpp"

struct dp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 3>, sw::mesh<dp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::vector_norm<0, 1>(x{}));
#else
using y = decltype(sw::vector_norm<1, 1>(x{}));
#endif

// SPDX-License-Identifier: Apache-2.0
// A norm of order 0 counts; no root gives the whole.
// expect: norm: partial_norm<P> and vector_norm<P> need an order P from 1 to 32767

#include "typed.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<16>, mesh, sw::partial_norm<0>>;
#else
using x = typed<float, sw::shape<16>, mesh, sw::partial_norm<1>>;
#endif
constexpr auto bytes = sizeof(x);

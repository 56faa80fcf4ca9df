// SPDX-License-Identifier: Apache-2.0
// Integers that are norms on each rank: their whole takes a root.
// expect: placement: partial_norm<P> is of float or double elements

#include "typed.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using x = typed<std::int32_t, sw::shape<16>, mesh, sw::partial_norm<2>>;
#else
using x = typed<double, sw::shape<16>, mesh, sw::partial_norm<2>>;
#endif
constexpr auto bytes = sizeof(x);

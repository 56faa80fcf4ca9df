// SPDX-License-Identifier: Apache-2.0
// A number of elements where the shape belongs.
// expect: tensor: what is given where the shape belongs is none
// expect: the extents as shape<...>
// expect(g++): integral_constant
// expect(clang): integral_constant
// expect(text): element: float; given: std::integral_constant<int, 16>; mesh: "dp" of 2

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using extents = std::integral_constant<int, 16>;
#else
using extents = sw::shape<16>;
#endif
constexpr auto s = sw::spec_of<float, extents, sw::mesh<dp>>::value;

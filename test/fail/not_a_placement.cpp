// SPDX-License-Identifier: Apache-2.0
// An axis by itself among positional placements.
// expect: placement: what is given where a placement belongs is none
// expect(g++): \bdp\b
// expect(clang): \bdp\b

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using placed = dp;
#else
using placed = sw::shard<0>;
#endif
constexpr auto s = sw::spec_of<float, sw::shape<4, 4>, sw::mesh<dp>, placed>::value;

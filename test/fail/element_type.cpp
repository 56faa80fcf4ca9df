// SPDX-License-Identifier: Apache-2.0
// Counts of 16 bits.
// expect: tensor: the element type is none that tensors have
// expect: std::int32_t for ids
// expect(g++): \bshort\b
// expect(clang): \bshort\b

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using id = short;
#else
using id = std::int32_t;
#endif
constexpr auto s = sw::spec_of<id, sw::shape<4, 4>, sw::mesh<dp>>::value;

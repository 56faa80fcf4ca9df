// SPDX-License-Identifier: Apache-2.0
// An axis of a mesh that is a struct of its own, not derived from axis<N>.
// expect: mesh: an argument is no mesh axis
// expect: derive the struct from it
// expect(g++): \bdp\b
// expect(clang): \bdp\b

#include <shardwise/vocabulary/operand.hpp>
namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
struct dp {};
#else
struct dp : sw::axis<2> {};
#endif
using mesh = sw::mesh<dp>;
constexpr int ranks = mesh::size;

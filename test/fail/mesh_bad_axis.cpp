// SPDX-License-Identifier: Apache-2.0
// A mesh axis of no rank.
// expect: mesh: a mesh axis must have at least one rank
// expect(types): <dp ?>

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace sw = shardwise;
#ifdef SHARDWISE_FAIL
struct dp : sw::axis<0> {};
#else
struct dp : sw::axis<1> {};
#endif
constexpr int ranks = sw::mesh<dp>::size;

// SPDX-License-Identifier: Apache-2.0
// One axis type stands in a mesh twice.
// expect: mesh: a mesh axis is listed twice
// expect(types): <dp, dp>
// expect(text): axes: "dp" of 2, "dp" of 2

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
constexpr int ranks = sw::mesh<dp, dp>::size;
#else
constexpr int ranks = sw::mesh<dp, tp>::size;
static_assert(ranks == 4);
#endif

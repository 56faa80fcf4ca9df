// SPDX-License-Identifier: Apache-2.0
// A mesh of ten thousand million ranks.
// expect: mesh: it has more ranks than 2\^31 - 1
// expect(types): <dp, tp ?>

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace sw = shardwise;
struct dp : sw::axis<100000> {};
#ifdef SHARDWISE_FAIL
struct tp : sw::axis<100000> {};
#else
struct tp : sw::axis<10000> {};
#endif
constexpr int ranks = sw::mesh<dp, tp>::size;

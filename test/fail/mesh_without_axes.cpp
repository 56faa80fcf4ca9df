// SPDX-License-Identifier: Apache-2.0
// A mesh of no axis: a single rank needs one of size 1.
// expect: mesh: no axis or more than 4 axes are given

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace sw = shardwise;

struct alone : sw::axis<1> {};
#ifdef SHARDWISE_FAIL
constexpr int ranks = sw::mesh<>::size;
#else
constexpr int ranks = sw::mesh<alone>::size;
static_assert(ranks == 1);
#endif

// SPDX-License-Identifier: Apache-2.0
// A mesh of five axes.
// expect: mesh: no axis or more than 4 axes are given

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace sw = shardwise;

template <int K>
struct a : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
constexpr int ranks = sw::mesh<a<0>, a<1>, a<2>, a<3>, a<4>>::size;
#else
constexpr int ranks = sw::mesh<a<0>, a<1>, a<2>, a<3>>::size;
static_assert(ranks == 16);
#endif

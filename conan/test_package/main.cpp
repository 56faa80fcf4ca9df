// SPDX-License-Identifier: Apache-2.0
// The smallest consumer of the Conan package: a mesh of named axes, and every rank's coordinates.

#include <cstdio>

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<4> {};
using mesh = sw::mesh<dp, tp>;
static_assert(mesh::size == 8);

#ifdef CONSUMER_WRONG
using wrong = sw::mesh<dp, dp>;  // a mesh axis is listed twice
static_assert(wrong::size == 4);
#endif

int main() {
  for (int rank = 0; rank < mesh::size; ++rank) {
    const auto coordinate = mesh::coordinate(rank);
    std::printf("rank %d: dp %d, tp %d\n", rank, coordinate[0], coordinate[1]);
    if (mesh::rank_of(coordinate) != rank) return 1;
  }
}

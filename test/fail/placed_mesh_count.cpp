// SPDX-License-Identifier: Apache-2.0
// Three ranks of a world for a mesh of two.
// expect: placed_mesh: the number of world ranks differs from the number of ranks of the mesh
// expect(text): mesh: "tp" of 2, placed_mesh<mesh<tp>, 1, 3, 5>

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using mesh = sw::placed_mesh<sw::mesh<tp>, 1, 3, 5>;
#else
using mesh = sw::placed_mesh<sw::mesh<tp>, 1, 3>;
#endif
constexpr int ranks = mesh::size;

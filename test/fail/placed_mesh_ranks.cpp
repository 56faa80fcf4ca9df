// SPDX-License-Identifier: Apache-2.0
// A rank of the world twice in one mesh.
// expect: placed_mesh: a world rank is negative or given twice

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using mesh = sw::placed_mesh<sw::mesh<tp>, 3, 3>;
#else
using mesh = sw::placed_mesh<sw::mesh<tp>, 1, 3>;
#endif
constexpr int ranks = mesh::size;

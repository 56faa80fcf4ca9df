// SPDX-License-Identifier: Apache-2.0
// Axes of a submesh in another order than the mesh has.
// expect: submesh: an axis named here is not an axis of the mesh, or the axes are not in the mesh's order

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
using part = sw::submesh<mesh, tp, dp>;
#else
using part = sw::submesh<mesh, dp, tp>;
#endif
constexpr int ranks = part::size;

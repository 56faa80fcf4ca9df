// SPDX-License-Identifier: Apache-2.0
// An axis flattened under the name of another axis of the mesh.
// expect: flattened: the new axis is already an axis of the mesh

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
struct other : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using flat = sw::flattened<mesh, tp, dp>;
#else
using flat = sw::flattened<mesh, other, dp>;
#endif
constexpr int ranks = flat::size;

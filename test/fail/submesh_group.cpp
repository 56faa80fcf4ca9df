// SPDX-License-Identifier: Apache-2.0
// The ranks along an axis that the mesh does not have.
// expect: submesh: an axis named here is not an axis of the mesh

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
using mesh = sw::mesh<dp, tp>;
struct pp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
constexpr auto ranks = mesh::group<pp>(0);
#else
constexpr auto ranks = mesh::group<dp>(0);
#endif
static_assert(ranks.size() == 2);

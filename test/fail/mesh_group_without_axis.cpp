// SPDX-License-Identifier: Apache-2.0
// The group of a rank of a mesh of two axes, without saying along which.
// expect: submesh: an axis named here is not an axis of the mesh, or the axes are not in the mesh's order; name axes of mesh<...>

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
constexpr auto ranks = mesh::group<>(0);
#else
constexpr auto ranks = mesh::group<dp>(0);
#endif
static_assert(ranks.size() > 0);

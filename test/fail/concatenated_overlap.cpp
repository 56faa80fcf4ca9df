// SPDX-License-Identifier: Apache-2.0
// Two submeshes that share an axis are concatenated.
// expect: submesh: an axis named here is not an axis of the mesh, or the axes are not in the mesh's order

#include <shardwise/vocabulary/submesh.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct cp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using cube = sw::mesh<dp, cp, tp>;
#ifdef SHARDWISE_FAIL
using both = sw::concatenated<cube, sw::submesh<cube, dp, cp>, sw::submesh<cube, cp, tp>>;
#else
using both = sw::concatenated<cube, sw::submesh<cube, dp>, sw::submesh<cube, cp, tp>>;
#endif
constexpr int size = both::size;

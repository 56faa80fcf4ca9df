// SPDX-License-Identifier: Apache-2.0
// wanted: a mesh of two axes
// mistake: the axes are structs of no base
// names: \bdp\b|first axis
// names: axis<
// names: deriv|: *sw::axis|: *axis
#include <cstdint>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
struct dp {};
struct tp {};
#else
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
#endif
using mesh = sw::mesh<dp, tp>;
static_assert(mesh::size == 4);

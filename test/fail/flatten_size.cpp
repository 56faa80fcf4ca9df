// SPDX-License-Identifier: Apache-2.0
// Two axes of 2 and 3 ranks flattened into one of 5.
// expect: flattened: the new axis has not as many ranks as the axes that it replaces have together

#include <shardwise/vocabulary/submesh.hpp>

namespace sw = shardwise;
struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
using mesh = sw::mesh<dp, tp>;
#ifdef SHARDWISE_FAIL
struct both : sw::axis<5> {};
#else
struct both : sw::axis<6> {};
#endif
using flat = sw::flattened<mesh, both, dp, tp>;
constexpr int ranks = flat::size;

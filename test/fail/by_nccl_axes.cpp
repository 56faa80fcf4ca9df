// SPDX-License-Identifier: Apache-2.0
// Ranks of an axis that the mesh does not have, connected by NCCL.
// expect: by_nccl: an axis named here is not an axis of the mesh, or is named twice
// expect(types): \bpp\b
#include <shardwise/runtime/processes/by_nccl.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct pp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using by = sw::by_nccl<pp>;
#else
using by = sw::by_nccl<tp>;
#endif
bool is_good() { return sw::processes::connections<sw::mesh<dp, tp>, by>::good; }

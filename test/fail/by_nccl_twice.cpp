// SPDX-License-Identifier: Apache-2.0
// An axis that NCCL connects, named twice, of meshes to choose from.
// expect: by_nccl: an axis named here is not an axis of the mesh, or is named twice
// expect(types): \btp\b
#include <shardwise/runtime/processes/by_nccl.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using by = sw::by_nccl<tp, tp>;
#else
using by = sw::by_nccl<tp>;
#endif
bool is_good() { return sw::processes::connections<sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<tp>>, by>::good; }

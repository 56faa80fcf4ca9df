// SPDX-License-Identifier: Apache-2.0
// An axis within processes that is named twice, of meshes to choose from.
// expect: within_process: an axis named here is not an axis of the mesh, or is named twice
// expect(types): \btp\b
#include <shardwise/runtime/processes/within_process.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using within = sw::within_process<tp, tp>;
#else
using within = sw::within_process<tp>;
#endif
bool is_good() { return sw::processes::layouts<sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<tp>>, within>::good; }

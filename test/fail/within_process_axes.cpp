// SPDX-License-Identifier: Apache-2.0
// Ranks of an axis that the mesh does not have, as threads of one process.
// expect: within_process: an axis named here is not an axis of the mesh, or is named twice
// expect(types): \bpp\b
#include <shardwise/runtime/processes/within_process.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct pp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using within = sw::within_process<pp>;
#else
using within = sw::within_process<tp>;
#endif
bool is_good() { return sw::processes::layouts<sw::mesh<dp, tp>, within>::good; }

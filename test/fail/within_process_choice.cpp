// SPDX-License-Identifier: Apache-2.0
// Two meshes to choose from that need two processes each.
// expect: launch_mpi: the number of processes must say which mesh runs
// expect(types): \btp\b
#include <shardwise/runtime/processes/within_process.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct more : sw::axis<3> {};
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using meshes = sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<dp>>;
#else
using meshes = sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<more, tp>>;
#endif
bool is_good() { return sw::processes::layouts<meshes, sw::within_process<tp>>::good; }

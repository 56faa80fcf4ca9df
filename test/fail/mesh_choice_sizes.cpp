// SPDX-License-Identifier: Apache-2.0
// A choice between two meshes of four ranks, of which --ranks 4 names both.
// expect: mesh_choice: the number of ranks must say which mesh runs
// expect(types): \btp\b
#include <shardwise/runtime/threads/threads.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct line : sw::axis<4> {};
#ifdef SHARDWISE_FAIL
using meshes = sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<line>>;
#else
using meshes = sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<dp>>;
#endif
int run(int argc, char** argv) {
  return sw::launch<meshes>(argc, argv, [](auto&) {});
}

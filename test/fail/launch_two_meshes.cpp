// SPDX-License-Identifier: Apache-2.0
// Threads as ranks of two meshes, of which one has more.
// expect: launch: the two meshes have different numbers of ranks
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using other = sw::mesh<dp, tp>;
#else
using other = sw::mesh<tp>;
#endif
void run() {
  sw::launch<sw::mesh<dp>, other>([](auto&, auto&) {});
}

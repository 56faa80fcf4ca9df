// SPDX-License-Identifier: Apache-2.0
// A function of ranks that takes none.
// expect: launch: the function given cannot be called with a rank
// expect: launch<mesh>([](auto& rank) { ... })

#include <shardwise/runtime/threads/threads.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

void run() {
#ifdef SHARDWISE_FAIL
  sw::launch<mesh>([] {});
#else
  sw::launch<mesh>([](auto&) {});
#endif
}

// SPDX-License-Identifier: Apache-2.0
// launch of an axis.
// expect: launch: what is given where the mesh belongs is no mesh<...>
// expect: launch<mesh>(f)
// expect(g++): \bdp\b
// expect(clang): \bdp\b

#include <shardwise/runtime/threads/threads.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

#ifdef SHARDWISE_FAIL
using where = dp;
#else
using where = mesh;
#endif
void run() {
  sw::launch<where>([](auto&) {});
}

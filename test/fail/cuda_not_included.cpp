// SPDX-License-Identifier: Apache-2.0
// Ranks on GPUs without the header for them.
// expect: launch_cuda: ranks on GPUs are not declared here; include shardwise/cuda.cuh

#include <shardwise/runtime/threads/threads.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

void run() {
#ifdef SHARDWISE_FAIL
  sw::launch_cuda<mesh>([](auto&) {});
#else
  sw::launch<mesh>([](auto&) {});
#endif
}

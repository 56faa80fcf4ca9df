// SPDX-License-Identifier: Apache-2.0
// wanted: the step on GPUs
// mistake: cuda.cuh is not included, and the source is none of CUDA
// names: launch_cuda
// names: cuda\.cuh
// names: include
#include "mlp.hpp"

void train(int argc, char** argv) {
#ifdef SHARDWISE_FAIL
  sw::launch_cuda<mesh>(argc, argv, [](auto& rank) {
#else
  sw::launch<mesh>(argc, argv, [](auto& rank) {
#endif
    std::printf("%d\n", rank.index());
  });
}

// SPDX-License-Identifier: Apache-2.0
// One process for each GPU, started by a launcher, which says who is who; NCCL_COMM_ID says where rank 0 is met:
//
//   NCCL_COMM_ID=localhost:29600 torchrun --no-python --nproc-per-node 4 ./11_processes_cuda
//   NCCL_COMM_ID=localhost:29600 mpirun -n 4 ./11_processes_cuda
//
// Started by hand it runs its ranks as threads. What is wrong with the environment is one sentence, before any GPU is touched.
#include <cstdio>
#include <exception>

#include <shardwise/cuda.cuh>

#include "program.hpp"

int main(int argc, char** argv) try {
  return sw::launch_cuda<mesh>(argc, argv, [](auto& rank) {
    const double loss = program::train<sw::cuda_backend>(rank, 20);
    if (rank.index() == 0) std::printf("loss after 20 steps %.4f\n", loss);
  });
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
// The same on four GPUs. Link shardwise::nccl.
#include <shardwise/cuda.cuh>

#define ON_GPUS 1
#include "main.cpp"

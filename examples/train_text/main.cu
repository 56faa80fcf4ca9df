// SPDX-License-Identifier: Apache-2.0
// train_text for GPUs: the same program, with --backend cuda.
#include <shardwise/cuda.cuh>
#include <shardwise/operations/attention/device.cuh>

#define TRAIN_TEXT_CUDA 1
#include "plan.cpp"

#include "main.cpp"

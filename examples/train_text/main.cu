// SPDX-License-Identifier: Apache-2.0
// train_text for GPUs: the same program, with --backend cuda. The compiler is given, if the defaults do not fit,
//   TRAIN_TEXT_GPUS      for how many GPUs: 1, 2, 4 or 8 (1)
//   TRAIN_TEXT_FLOAT32   defined: the model computes in float; else in bf16, beside parameters and statistics in float
#include <shardwise/cuda.cuh>

#include <shardwise/operations/attention/device_elements.cuh>
#include <shardwise/operations/cache/device.cuh>

#ifdef TRAIN_TEXT_FLOAT32
SHARDWISE_DEVICE_ATTENTION(float)
#else
SHARDWISE_DEVICE_ATTENTION(shardwise::bf16)
#endif

#define TRAIN_TEXT_CUDA 1
#ifndef TRAIN_TEXT_GPUS
#define TRAIN_TEXT_GPUS 1
#endif
#include "generate.cpp"
#include "plan.cpp"

#include "main.cpp"

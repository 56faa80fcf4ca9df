// SPDX-License-Identifier: Apache-2.0
// The same on four GPUs. The kernels that a program's custom operations need are compiled where this stands.
#include <shardwise/cuda.cuh>

#define OWN_OPERATION_CUDA 1
#include "main.cpp"

SHARDWISE_DEVICE_KERNELS(gated::swiglu, gated::swiglu_gate, gated::swiglu_up)

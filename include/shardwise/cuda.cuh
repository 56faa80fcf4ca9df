// SPDX-License-Identifier: Apache-2.0
// Everything that runs on NVIDIA GPUs beside shardwise.hpp: ranks, one GPU each, their collectives over NCCL, and the
// executor that replays a step as one CUDA graph. For CUDA translation units; link shardwise::nccl.
#pragma once

#include <shardwise/shardwise.hpp>

#include <shardwise/runtime/cuda/executor.cuh>
#include <shardwise/runtime/cuda/launch.hpp>

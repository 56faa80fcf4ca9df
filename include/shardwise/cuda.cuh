// SPDX-License-Identifier: Apache-2.0
// Everything that runs on NVIDIA GPUs: what core.hpp has, ranks, one GPU each, their collectives over NCCL, and the executor that
// replays a step as one CUDA graph. For CUDA translation units; link shardwise::nccl. A program that runs on host threads, too,
// includes shardwise.hpp besides.
#pragma once

#include <shardwise/core.hpp>

#include <shardwise/runtime/cuda/executor.cuh>
#include <shardwise/runtime/cuda/launch.hpp>

#if SHARDWISE_EXPLAIN
#include <shardwise/io/explanation/programs.hpp>
#endif

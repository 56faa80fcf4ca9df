// SPDX-License-Identifier: Apache-2.0
// The kernels of more_functions.hpp on GPUs. Include it in one CUDA source of a program that calls those functions there; link
// shardwise::nccl.
#pragma once

#include <shardwise/more_functions.hpp>
#include <shardwise/operations/activation/device.cuh>
#include <shardwise/operations/cache/device.cuh>
#include <shardwise/operations/channel_norm/device.cuh>
#include <shardwise/operations/interpolation/device.cuh>
#include <shardwise/operations/loss/device_more.cuh>
#include <shardwise/operations/scan/device.cuh>

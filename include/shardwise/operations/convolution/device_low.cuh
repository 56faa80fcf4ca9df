// SPDX-License-Identifier: Apache-2.0
// conv2d and its adjoints on devices, of float, double and elements of two bytes. Include it in one CUDA source of a program that calls
// conv2d on these.
#pragma once

#include <shardwise/operations/convolution/device.cuh>

SHARDWISE_DEVICE_KERNELS_OF(shardwise::bfloat16, shardwise::custom::conv2d, shardwise::custom::conv2d_dx,
                            shardwise::custom::conv2d_dw)
SHARDWISE_DEVICE_KERNELS_OF(shardwise::float16, shardwise::custom::conv2d, shardwise::custom::conv2d_dx,
                            shardwise::custom::conv2d_dw)

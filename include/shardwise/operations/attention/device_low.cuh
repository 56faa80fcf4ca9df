// SPDX-License-Identifier: Apache-2.0
// Attention on devices, of float, double and elements of two bytes. Include it in one CUDA source of a program that calls
// scaled_dot_product_attention on these. Of one type alone: device_elements.cuh.
#pragma once

#include <shardwise/operations/attention/device.cuh>

SHARDWISE_DEVICE_ATTENTION(shardwise::bfloat16, shardwise::float16)

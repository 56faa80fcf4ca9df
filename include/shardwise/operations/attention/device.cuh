// SPDX-License-Identifier: Apache-2.0
// Attention on devices, of float and double. Include it in one CUDA source of a program that calls scaled_dot_product_attention.
#pragma once

#include <shardwise/operations/attention/device_elements.cuh>

SHARDWISE_DEVICE_ATTENTION(float, double)

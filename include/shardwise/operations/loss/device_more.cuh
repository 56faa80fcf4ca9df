// SPDX-License-Identifier: Apache-2.0
// Losses that are elementwise on devices, by the host's formulas. Include it in one CUDA source of a program that calls them.
#pragma once

#include <shardwise/operations/activation/device.cuh>
#include <shardwise/operations/loss/host_more.hpp>

SHARDWISE_DEVICE_KERNELS(shardwise::custom::smooth_l1, shardwise::custom::smooth_l1_dx, shardwise::custom::logits_loss,
                         shardwise::custom::logits_loss_dx, shardwise::custom::logits_loss_dtarget,
                         shardwise::custom::divergence, shardwise::custom::divergence_dx,
                         shardwise::custom::divergence_dtarget)

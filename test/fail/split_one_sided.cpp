// SPDX-License-Identifier: Apache-2.0
// A fused update is split by all of its gradients.
// expect: split_fused_optimizer: At least one split optimizer does not have input.

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
constexpr int nodes = step<sw::fused_optimizer, sw::split_fused_optimizer<0, 0, 1, 2, 3>>::program.node_count;
#else
constexpr int nodes = step<sw::fused_optimizer, sw::split_fused_optimizer<0, 1, 2>>::program.node_count;
#endif

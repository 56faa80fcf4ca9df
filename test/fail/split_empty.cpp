// SPDX-License-Identifier: Apache-2.0
// A fused update is split by no gradient.
// expect: split_fused_optimizer: The given split_gradients is empty.
// expect(types): <split_fused_optimizer<0> ?>|<shardwise::split_fused_optimizer<0> ?>

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
constexpr int nodes = step<sw::fused_optimizer, sw::split_fused_optimizer<0>>::program.node_count;
#else
constexpr int nodes = step<sw::fused_optimizer, sw::split_fused_optimizer<0, 1>>::program.node_count;
#endif

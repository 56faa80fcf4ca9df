// SPDX-License-Identifier: Apache-2.0
// An update that is no fused Adam is split.
// expect: split_fused_optimizer: Only fused_adam is supported now

#include "fail_step.hpp"

#ifdef SHARDWISE_FAIL
using form = sw::foreach_optimizer;
#else
using form = sw::fused_optimizer;
#endif
constexpr int nodes = step<form, sw::split_fused_optimizer<0, 1>>::program.node_count;

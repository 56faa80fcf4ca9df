// SPDX-License-Identifier: Apache-2.0
// Buckets of the plan, and a pass of the pipeline that makes buckets.
// expect: plan: data_parallel has buckets, and the pipeline a pass that puts gradients into buckets too
// expect(g++): plan<.*buckets<9>.*comm_fusion_with_concat<50>
// expect(clang): plan<.*buckets<9>.*comm_fusion_with_concat<50>
// expect(text): pass: comm_fusion_with_concat<50>

#include "fail_step.hpp"

using in_buckets = sw::plan<sw::data_parallel<dp, sw::buckets<9>>>;
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<sw::fused_optimizer, sw::comm_fusion_with_concat<50>>;
#else
using passes = sw::pipeline<sw::fused_optimizer>;
#endif
using stepped = sw::train_step<model, task, in_buckets, mesh, sw::adam<>, passes>;
constexpr int nodes = stepped::program.node_count;

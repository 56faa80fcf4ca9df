// SPDX-License-Identifier: Apache-2.0
// The plan shards the output of one layer of three, and a sum of it with a whole tensor is refused two modules deep: the
// error names the module, the node and what it reads, beside the sentence and the operands.
// expect: pointwise: the operands are placed differently on a mesh axis
// expect(g++): reading<.*"gelu_erf_1"}, .*"add_2"}>
// expect(clang): reading<.*"gelu_erf_1"}, .*"add_2"}>
// expect(text): module: layers.1.mlp; node: add_4; which reads: gelu_erf_1, add_2
// located: layers.1.mlp add_4

#include "nested_step.hpp"

#ifdef SHARDWISE_FAIL
using layer = sw::colwise<tp>;
#else
using layer = sw::colwise<tp, 1, sw::output<sw::replicate>>;
#endif
using split = sw::plan<sw::data_parallel<dp>, sw::at<"layers.1.mlp.net", layer>>;
using step = sw::train_step<nested<add_input>::model, mean_task, split, mesh, sw::adam<>>;
constexpr int nodes = step::program.node_count;

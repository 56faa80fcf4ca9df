// SPDX-License-Identifier: Apache-2.0
// A style refuses what arrives at its module, two modules deep: the error names the module and, as its node, the call.
// expect: colwise: the input must be replicate or reduced on the style's axis
// located: layers.2.mlp.net layers_2_mlp_net

#include "nested_step.hpp"

#ifdef SHARDWISE_FAIL
using arriving = sw::shard<1>;
#else
using arriving = sw::replicate;
#endif
using split = sw::plan<sw::data_parallel<dp>, sw::at<"layers.2.mlp", sw::prepare_input<tp, arriving>>,
                       sw::at<"layers.2.mlp.net", sw::colwise<tp, 1, sw::output<sw::replicate>>>>;
using step = sw::train_step<nested<add_input>::model, mean_task, split, mesh, sw::adam<>>;
constexpr int nodes = step::program.node_count;

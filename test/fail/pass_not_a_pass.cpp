// SPDX-License-Identifier: Apache-2.0
// Something that is no pass stands in a pipeline.
// expect: pipeline: this type is not a pass
// expect(types): <shardwise::adam<.*?> ?>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<sw::adam<>>;
#else
using passes = sw::pipeline<unchanged>;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

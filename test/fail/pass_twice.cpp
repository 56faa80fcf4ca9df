// SPDX-License-Identifier: Apache-2.0
// A pass stands in a pipeline twice.
// expect: pipeline: cannot apply a pass twice
// expect(types): <keep<0> ?>

#include "small_step.hpp"

template <int K>
struct keep : unchanged {};
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<keep<0>, keep<0>>;
#else
using passes = sw::pipeline<keep<0>, keep<1>>;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;

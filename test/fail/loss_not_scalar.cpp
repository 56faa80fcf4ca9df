// SPDX-License-Identifier: Apache-2.0
// A task returns one loss for each row of the batch.
// expect: train_step: the loss must be a scalar (rank 0)
// expect: shardwise::operand<float, shardwise::shape<4L?>, shardwise::shard<0(, 1L?)?> ?>

#include "small_step.hpp"

struct task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const {
#ifdef SHARDWISE_FAIL
    return sw::mean<1>(m(x));
#else
    return sw::mean(m(x));
#endif
  }
};
using step = sw::train_step<one_linear, task, plan, mesh>;
constexpr int nodes = step::program.node_count;

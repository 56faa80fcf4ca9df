// SPDX-License-Identifier: Apache-2.0
// A task returns a value that is a maximum over the ranks.
// expect: train_step: the loss is partial with a reduction other than sum, so it is not the sum of the ranks' losses
// expect: operand<float, shardwise::shape<>, shardwise::partial<.*?>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using constant = sw::input_tensor<float, sw::shape<>, sw::on<dp, sw::partial<sw::reduction::max>>>;
#else
using constant = sw::input_tensor<float, sw::shape<>, sw::on<dp, sw::partial<>>>;
#endif
struct task {
  using inputs = sw::inputs<four_rows, constant>;
  constexpr auto operator()(const auto&, const auto&, const auto& loss) const { return loss; }
};
using step = sw::train_step<one_linear, task, plan, mesh>;
constexpr int nodes = step::program.node_count;

// SPDX-License-Identifier: Apache-2.0
// wanted: a task that is fed x and y
// mistake: its inputs list one tensor, its call takes two
// names: task
// names: inputs
// names: one (parameter|argument|tensor)|as many|number|after the model
#include "mlp.hpp"

struct regression {
#ifdef SHARDWISE_FAIL
  using inputs = sw::inputs<batch>;
#else
  using inputs = sw::inputs<batch, batch>;
#endif
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
static_assert(sw::train_step<mlp, regression, plan, mesh, sw::adam<>>::peak_bytes > 0);

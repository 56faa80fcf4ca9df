// SPDX-License-Identifier: Apache-2.0
// wanted: a task of two inputs
// mistake: the list of inputs is called input, not inputs
// names: task|regression
// names: \binputs\b
// names: using inputs|declare|inputs<
#include "mlp.hpp"

struct regression {
#ifdef SHARDWISE_FAIL
  using input = sw::inputs<batch, batch>;
#else
  using inputs = sw::inputs<batch, batch>;
#endif
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
static_assert(sw::train_step<mlp, regression, plan, mesh, sw::adam<>>::peak_bytes > 0);

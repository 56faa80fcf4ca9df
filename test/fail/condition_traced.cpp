// SPDX-License-Identifier: Apache-2.0
// `if` on a traced value.
// expect: tensor: it stands where a truth value is wanted
// expect: write where(mask, x, y)

#include "small_step.hpp"

struct clipped {
  using inputs = mean_task::inputs;
  constexpr auto operator()(const auto& model, const auto& x) const {
    auto loss = sw::mean(model(x));
    if (loss) loss = loss * 0.5;
    return loss;
  }
};

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, clipped, plan, mesh, sw::adam<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;

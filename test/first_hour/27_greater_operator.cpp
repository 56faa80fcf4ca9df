// SPDX-License-Identifier: Apache-2.0
// wanted: the negative elements put to zero
// mistake: tensors are compared by the operator
// names: operator|>|compar
// names: \bgt\b
// names: where|gt\(
#include "mlp.hpp"

struct rectify {
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
#ifdef SHARDWISE_FAIL
    return sw::mean(sw::where(y > 0, y, y * 0.));
#else
    return sw::mean(sw::where(sw::gt(y, 0.), y, y * 0.));
#endif
  }
};
static_assert(sw::train_step<mlp, rectify, plan, mesh, sw::adam<>>::peak_bytes > 0);

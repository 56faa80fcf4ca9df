// SPDX-License-Identifier: Apache-2.0
// wanted: a gathered hidden layer
// mistake: placement and axis of redistribute are swapped
// names: redistribute
// names: replicate
// names: axis first|redistribute<axis, placement>|swap
#include "mlp.hpp"

struct gathered {
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
#ifdef SHARDWISE_FAIL
    return sw::mean(sw::redistribute<sw::replicate, dp>(y));
#else
    return sw::mean(sw::redistribute<dp, sw::replicate>(y));
#endif
  }
};
static_assert(sw::train_step<mlp, gathered, plan, mesh, sw::adam<>>::peak_bytes > 0);

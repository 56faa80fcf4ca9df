// SPDX-License-Identifier: Apache-2.0
// wanted: the loss printed while it is computed
// mistake: item() is asked of a traced tensor
// names: item
// names: trac
// names: loss\(\)|eager|executor
#include "mlp.hpp"

struct printing {
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    const auto loss = sw::mean(error * error);
#ifdef SHARDWISE_FAIL
    std::printf("%f\n", static_cast<double>(loss.item()));
#endif
    return loss;
  }
};
static_assert(sw::train_step<mlp, printing, plan, mesh, sw::adam<>>::peak_bytes > 0);

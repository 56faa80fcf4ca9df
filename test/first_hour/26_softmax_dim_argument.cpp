// SPDX-License-Identifier: Apache-2.0
// wanted: a softmax over the last dim
// mistake: the dim is a function argument, as in PyTorch
// names: softmax
// names: template argument|<-1>|softmax<
// names: softmax<
#include "mlp.hpp"

struct attend {
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const {
#ifdef SHARDWISE_FAIL
    return sw::mean(sw::softmax(model(x), -1));
#else
    return sw::mean(sw::softmax<-1>(model(x)));
#endif
  }
};
static_assert(sw::train_step<mlp, attend, plan, mesh, sw::adam<>>::peak_bytes > 0);

// SPDX-License-Identifier: Apache-2.0
// wanted: a classifier trained on cross-entropy
// mistake: the task returns the loss of each row
// names: loss
// names: one (element|number|value)|scalar|no dims|rank 0
// names: mean|sum
#include "mlp.hpp"

struct classify {
  using labels = sw::input_tensor<std::int32_t, sw::shape<32>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
#ifdef SHARDWISE_FAIL
    return sw::cross_entropy_rows(model(x), y);
#else
    return sw::cross_entropy(model(x), y);
#endif
  }
};
static_assert(sw::train_step<mlp, classify, plan, mesh, sw::adam<>>::peak_bytes > 0);

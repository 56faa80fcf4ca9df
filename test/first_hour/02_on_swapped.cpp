// SPDX-License-Identifier: Apache-2.0
// wanted: a batch that is split over dp
// mistake: axis and placement of `on` are swapped
// names: shard<0
// names: \bdp\b
// names: axis first|on<axis, placement>|swap
#include "mlp.hpp"

struct swapped {
#ifdef SHARDWISE_FAIL
  using x_type = sw::input_tensor<float, sw::shape<32, 10>, sw::on<sw::shard<0>, dp>>;
#else
  using x_type = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
#endif
  using inputs = sw::inputs<x_type, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
static_assert(sw::train_step<mlp, swapped, plan, mesh, sw::adam<>>::peak_bytes > 0);

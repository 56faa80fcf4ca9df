// SPDX-License-Identifier: Apache-2.0
// wanted: an input of 32 x 10 floats
// mistake: the shape is given before the element type
// names: shape<32
// names: element type|float
// names: first|order|input_tensor<(T|float|type), shape
#include "mlp.hpp"

struct shape_first {
#ifdef SHARDWISE_FAIL
  using x_type = sw::input_tensor<sw::shape<32, 10>, float, sw::on<dp, sw::shard<0>>>;
#else
  using x_type = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
#endif
  using inputs = sw::inputs<x_type, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
static_assert(sw::train_step<mlp, shape_first, plan, mesh, sw::adam<>>::peak_bytes > 0);

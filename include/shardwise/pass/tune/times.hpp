// SPDX-License-Identifier: Apache-2.0
// What a device's table of times is made of, as bench/tune/tune.cu writes it. Figures are thousandths of the time that the kernels take
// apart; 0: not measured. A table is a struct with `products`, `norms`, `losses` and `tf32`: whether float products are rounded to TF32.
#pragma once

#include <cstdint>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::passes {

// Products y_k = x w_k^T + b_k, dw_k = dy_k^T x with the sums of dy_k over its rows, and the sum of dy_k w_k over k, as one: x rows x in,
// y_k rows x out.
struct merged_products {
  std::int64_t shape[4];        // rows, in, out, how many
  std::int16_t permille[4][3];  // float, TF32, double, bfloat16; forward, weights, added
};

// What goes back through a layer norm of rows of this width, its weight and its bias, as one kernel.
struct joined_norms {
  std::int64_t shape[2];     // rows, width
  std::int16_t permille[3];  // float, double, bfloat16
};

// The losses of rows of so many classes and what goes back to their logits, as one kernel.
struct joined_losses {
  std::int64_t shape[2];     // rows, classes
  std::int16_t permille[3];  // float, double, bfloat16
};

}  // namespace shardwise::inline v0_1::passes

// SPDX-License-Identifier: Apache-2.0
// fp32_precision: what devices compute products of float by (PyTorch: torch.backends.cuda.matmul.fp32_precision).
#pragma once

namespace shardwise::inline v0_1 {

enum class fp32_precision : unsigned char {
  ieee,   // float's own products and sums
  tf32,   // factors are rounded to TF32, 10 bits of fraction
  tf32x3  // three products of TF32 for one, with errors of float's size
};

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// What convolutions by cuDNN and copies between memory formats take on a GPU, as measured: written by bench/convolution/rates_cudnn.cu,
// which says how. Not measured yet: nothing is decided by it.
#pragma once

#include <cstdint>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace layout_rates_cudnn {

inline constexpr bool is_measured = false;

// A convolution of a square image, and picoseconds for each of its multiplications, of float, of float rounded to TF32 and of bfloat16, in
// this order: forward, all contiguous, all channels-last, operands channels-last and result contiguous; the image's gradient likewise; the
// weight's gradient, all contiguous, operands channels-last.
struct row {
  std::int64_t shape[7];  // images, inputs and outputs of a group, side, kernel, stride, groups
  double picoseconds[3][8];
};
inline constexpr row rows[] = {{{1, 1, 1, 1, 1, 1, 1}, {}}};

// Elements of a copy from one format to the other, and nanoseconds for each, of four bytes and of two.
struct copy_row {
  double elements, nanoseconds[2];
};
inline constexpr copy_row copies[] = {{1, {0, 0}}};

}  // namespace layout_rates_cudnn

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// How the matrices of a product lie in memory, and loops around products.
#pragma once

#include <cstdint>

#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// A matrix of one product as it lies in memory: extent and stride of its two dims, and of the batch.
struct strided_matrix {
  std::int64_t row = 0, column = 0, row_step = 0, column_step = 0;

  // cuBLASLt steps by 1 along stored columns: along the rows, or (transposed) along the columns.
  bool plain() const { return row == 1 || row_step == 1; }
  bool turned() const { return column == 1 || column_step == 1; }
  // Columns must not overlap, as a broadcast operand's do.
  bool fits() const { return (plain() || turned()) && leading() >= (plain() ? row : column); }
  // The other stride; of a single stored column it means nothing, yet must be at least the rows.
  std::int64_t leading() const { return plain() ? distance(row, column, column_step) : distance(column, row, row_step); }

 private:
  static std::int64_t distance(std::int64_t rows, std::int64_t columns, std::int64_t step) {
    return columns == 1 ? rows : step;
  }
};

constexpr std::int64_t alignment_of(std::uintptr_t p) { return p % 16 == 0 ? 16 : p % 8 == 0 ? 8 : p % 4 == 0 ? 4 : 2; }

// f(offsets, whether it is the first) for every point of a walk.
template <class F>
void each_point(walk<3> w, F&& f) {
  if (w.rank == 0) {
    const std::int64_t none[3]{};
    w.push(1, none);
  }
  bool first = true;
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* step) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at[3] = {off[0] + i * step[0], off[1] + i * step[1], off[2] + i * step[2]};
      f(at, first);
      first = false;
    }
  });
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Scratch of convolutions on hosts: blocks of windows side by side, of weights and of results, and what their products want.
#pragma once

#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/propagation/scratch.hpp>

namespace shardwise::inline v0_1 {

// One block of a product: `rows` outputs (or inputs) by `columns` places (or elements of windows), summed over `depth`.
struct convolution_panels {
  static constexpr std::int64_t most_rows = 256, most_places = 256, most_columns = 512;
  static constexpr std::int64_t few_places = 128;  // of an image: fewer are computed with those of the next one
  static constexpr std::int64_t channels = 64;     // that loops along channels take at once
  static constexpr std::int64_t lane_bytes = 64;   // those whose sums stay in registers
  static constexpr std::int64_t sums = 16;         // that are kept for each tap, in double
  static_assert(sums * 8 <= channels * 4);         // in the same room

  std::int64_t windows = 0, weights = 0, results = 0, product = 0, taps = 0;  // bytes of each part

  static constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
  static constexpr std::int64_t align(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  // Elements from one row of n to the next: whole vectors, and no two rows in one cache set.
  static constexpr std::int64_t line(std::int64_t n) { return (n + 15) / 16 * 16 + 16; }

  // Of elements of T: `windows` is a block of depth by columns in either order, `results` one of rows by columns; `taps` has room for
  // `side_by_side` elements for each tap.
  template <class T>
  static constexpr convolution_panels of(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t weights,
                                         std::int64_t taps, std::int64_t side_by_side) {
    constexpr std::int64_t size = sizeof(T);
    const std::int64_t k = gemm_panels::deepest(depth);
    convolution_panels p;
    p.windows = align(line(k) * line(columns) * size);
    p.weights = align(weights * size);
    p.results = align(line(rows) * line(columns) * size);
    p.product = align(static_cast<std::int64_t>(host::gemm_workspace_bytes<T>(rows, columns, k)));
    p.taps = align(taps * side_by_side * size);
    return p;
  }
  constexpr std::int64_t bytes() const { return windows + weights + results + product + taps; }

  // Results of `outputs` a group at `places`, each summed over `inputs` channels by `taps`. A kernel of several taps is copied in the
  // windows' order, most_rows outputs at a time.
  template <class T>
  static constexpr convolution_panels of_places(std::int64_t outputs, std::int64_t places, std::int64_t inputs,
                                                std::int64_t taps) {
    const std::int64_t rows = least(outputs, most_rows), depth = inputs * taps;
    return of<T>(rows, least(places, most_places), depth, taps > 1 ? line(rows) * line(depth) : 0, taps,
                 channels * (inputs < 1 ? 1 : inputs));
  }
  // Gradients of the weights of `outputs` a group, `inputs` channels and `taps`, each summed over places.
  template <class T>
  static constexpr convolution_panels of_weights(std::int64_t outputs, std::int64_t inputs, std::int64_t places,
                                                 std::int64_t taps) {
    const std::int64_t rows = least(outputs, most_rows);
    return of<T>(rows, least(inputs * taps, most_columns), places, line(rows) * line(gemm_panels::deepest(places)), taps,
                 channels);
  }
};

}  // namespace shardwise::inline v0_1

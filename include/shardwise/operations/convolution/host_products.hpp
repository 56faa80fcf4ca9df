// SPDX-License-Identifier: Apache-2.0
// Convolutions as the host's matrix product of weights and windows, block by block.
#pragma once

#include <shardwise/operations/convolution/host_windows.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/support/config.hpp>

// The law. An element is one sum over its window in the order (row of the kernel, column, channel), in blocks that begin where the
// window's size alone says, by gemm's own law; an element of a weight's gradient one over all places, image by image. So its bits do
// not depend on strides, that is, on the memory format of any operand or result, nor on which other elements are computed with it:
// what threads and ranks share, but for ranks that hold parts of the sum itself.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Parts of the scratch.
template <class T>
struct convolution_space {
  T *windows, *weights, *results;
  void* product;
  void* taps;

  convolution_space(T* scratch, const convolution_panels& p) {
    std::byte* at = reinterpret_cast<std::byte*>(scratch);
    const auto take = [&](std::int64_t bytes) {
      std::byte* const part = at;
      at += bytes;
      return part;
    };
    windows = reinterpret_cast<T*>(take(p.windows));
    weights = reinterpret_cast<T*>(take(p.weights));
    results = reinterpret_cast<T*>(take(p.results));
    product = take(p.product);
    taps = take(p.taps);
  }
};

// out(image, output, place) = sum over the window of weight(output, element) read(element, place): y, and each phase of x's gradient.
template <class T>
struct convolution_product {
  convolution_windows<T> in{};  // of the first group
  T* out = nullptr;
  convolution_strides stored{};  // of `out`
  const T* weight = nullptr;     // of the first output of the first group, at the first taps
  std::int64_t of_output = 0, of_channel = 0, of_row = 0, of_column = 0, of_group = 0;  // strides of the weight
  std::int64_t images = 0, groups = 1, outputs = 0;                                     // of a group

  convolution_panels panels() const {
    const std::int64_t taps = in.rows.count * in.columns.count;
    return convolution_panels::of_places<T>(outputs, images * in.places_of_image(), in.channels, taps);
  }
  bool is_padded() const { return in.rows.is_padded() || in.columns.is_padded(); }
  const T* at(std::int64_t group, std::int64_t output) const { return weight + group * of_group + output * of_output; }

  // Of places [begin, begin + size), image by image.
  void run(interval places, const convolution_space<T>& w) const {
    const std::int64_t depth = in.depth(), block = gemm_panels::depth_of(depth);
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t m = 0; m < outputs; m += convolution_panels::most_rows) {
        const std::int64_t rows = gemm_panels::smaller(outputs - m, convolution_panels::most_rows);
        if (depth == 0) {
          clear(g, m, rows, places);
          continue;
        }
        const matrix_view<const T> weights = weights_of(g, m, rows, w);
        for (std::int64_t k = 0; k < depth; k += block)
          multiply(g, m, rows, k, gemm_panels::smaller(depth - k, block), places,
                   {weights.data + k * weights.col, weights.row, weights.col}, w);
      }
  }

 private:
  void multiply(std::int64_t g, std::int64_t m, std::int64_t rows, std::int64_t k, std::int64_t depth, interval places,
                matrix_view<const T> weights, const convolution_space<T>& w) const {
    const place_stride to(images, in.rows, in.columns, stored), from(images, in.rows, in.columns, in.stride);
    const bool as_is = in.rows.is_alone() && in.columns.is_alone() && from.in_image != 0;
    // Images of few places are computed several together: else most of a block would be read for a few vectors of places.
    const bool small = !as_is && to.in_image == 1 && to.in_all == 0 && in.places_of_image() < convolution_panels::few_places;
    // Results of a block that no matrix describes, or whose rows are too short for vectors, are put where they belong one by one.
    const bool apart = to.in_image == 0 || small || (stored.of[1] == 1 && !is_across(rows));
    const bool in_images = (!apart && to.in_all == 0) || (as_is && from.in_all == 0);
    convolution_windows<T> group = in;
    group.data += g * in.channels * in.stride.of[1];
    each_block_of_places(
        places, convolution_panels::most_places, in.places_of_image(), in_images, [&](std::int64_t at, std::int64_t n) {
          const matrix_view<const T> x = as_is
                                             ? matrix_view<const T>{group.data + offset(at, in.stride) + k * in.stride.of[1],
                                                                    in.stride.of[1], from.in_image}
                                             : group.gather(k, depth, at, n, w.windows);
          const T beta = k == 0 ? T(0) : T(1);
          if (!apart) {
            T* const o = out + (g * outputs + m) * stored.of[1] + offset(at, stored);
            return gemm<T>(rows, n, depth, T(1), weights, x, beta, {o, stored.of[1], to.in_image}, w.product);
          }
          const matrix_view<T> o = is_across(rows) ? matrix_view<T>{w.results, 1, convolution_panels::line(rows)}
                                                   : matrix_view<T>{w.results, convolution_panels::line(n), 1};
          if (k > 0) each_place(g, m, rows, at, n, o, [](T& here, T& there) { here = there; });
          gemm<T>(rows, n, depth, T(1), weights, x, beta, o, w.product);
          each_place(g, m, rows, at, n, o, [](T& here, T& there) { there = here; });
        });
  }
  // Outputs [m, m + rows) by elements of the window: as they lie, or copied, in squares that a cache holds with all taps.
  matrix_view<const T> weights_of(std::int64_t g, std::int64_t m, std::int64_t rows, const convolution_space<T>& w) const {
    const std::int64_t p = in.rows.count, q = in.columns.count, c = in.channels;
    const std::int64_t step = c > 1 ? of_channel : q > 1 ? of_column : of_row;
    const T* const from = at(g, m);
    if ((q == 1 || of_column == c * step) && (p == 1 || of_row == c * q * step)) return {from, of_output, step};
    const bool across = is_across(rows);
    const std::int64_t line = convolution_panels::line(across ? rows : c * p * q);
    const std::int64_t to_row = across ? 1 : line, to_element = across ? line : 1;
    const std::int64_t tall = of_output == 1 ? rows : 16, wide = of_channel == 1 ? c : 16;
    // Taps that lie side by side, as those of a contiguous kernel: transposed with the channels, output by output.
    if (!across && of_channel != 1 && (q == 1 || of_column == 1) && (p == 1 || of_row == q)) {
      for (std::int64_t r = 0; r < rows; r += tall)
        for (std::int64_t j = 0; j < c; j += wide)
          for (std::int64_t a = r; a < rows && a < r + tall; ++a)
            tiles::copy(from + a * of_output + j * of_channel, of_channel, w.weights + a * line + j, c, p * q,
                        gemm_panels::smaller(c - j, wide));
      return {w.weights, to_row, to_element};
    }
    for (std::int64_t r = 0; r < rows; r += tall)
      for (std::int64_t j = 0; j < c; j += wide)
        for (std::int64_t tap = 0; tap < p * q; ++tap) {
          const T* const x = from + r * of_output + j * of_channel + tap / q * of_row + tap % q * of_column;
          T* const o = w.weights + r * to_row + (tap * c + j) * to_element;
          const std::int64_t height = gemm_panels::smaller(rows - r, tall), width = gemm_panels::smaller(c - j, wide);
          if (across && of_output == 1)
            for (std::int64_t b = 0; b < width; ++b)
              __builtin_memcpy(o + b * line, x + b * of_channel, static_cast<std::size_t>(height) * sizeof(T));
          else if (across)
            for (std::int64_t b = 0; b < width; ++b)
              for (std::int64_t a = 0; a < height; ++a) o[b * line + a] = x[a * of_output + b * of_channel];
          else
            for (std::int64_t a = 0; a < height; ++a)
              for (std::int64_t b = 0; b < width; ++b) o[a * line + b] = x[a * of_output + b * of_channel];
        }
    return {w.weights, to_row, to_element};
  }
  // Whether neighbours of a block of results are outputs, not places.
  bool is_across(std::int64_t rows) const { return stored.of[1] == 1 && rows >= 16; }
  std::int64_t offset(std::int64_t place, const convolution_strides& s) const {
    const std::int64_t w = in.columns.places;
    return s(place / in.places_of_image(), 0, place / w % in.rows.places, place % w);
  }
  // f(element of the block, element of the result)
  template <class F>
  void each_place(std::int64_t g, std::int64_t m, std::int64_t rows, std::int64_t at, std::int64_t n, matrix_view<T> block,
                  const F& f) const {
    T* const first = out + (g * outputs + m) * stored.of[1];
    if (block.col == 1 && place_stride(images, in.rows, in.columns, stored).in_image == 1) {
      for (std::int64_t i = 0, size = 0; i < n; i += size) {  // what is in one image
        size = gemm_panels::smaller(in.places_of_image() - (at + i) % in.places_of_image(), n - i);
        T* const o = first + offset(at + i, stored);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t x = 0; x < size; ++x) f(block.data[r * block.row + i + x], o[r * stored.of[1] + x]);
      }
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      T* const o = first + offset(at + i, stored);
      for (std::int64_t r = 0; r < rows; ++r) f(block.data[r * block.row + i * block.col], o[r * stored.of[1]]);
    }
  }
  void clear(std::int64_t g, std::int64_t m, std::int64_t rows, interval places) const {
    for (std::int64_t i = places.begin; i < places.begin + places.size; ++i)
      for (std::int64_t r = 0; r < rows; ++r) out[(g * outputs + m + r) * stored.of[1] + offset(i, stored)] = T(0);
  }
};

// The gradient of a weight: out(output, element) = sum over places of dy(output, place) x(element, place).
template <class T>
struct convolution_weights_product {
  convolution_windows<T> in{}, dy{};  // of the first group; dy's windows are single elements, its channels a group's outputs
  T* out = nullptr;
  convolution_strides stored{};
  std::int64_t images = 0, outputs = 0;  // of a group

  std::int64_t places() const { return images * in.places_of_image(); }
  convolution_panels panels() const {
    return convolution_panels::of_weights<T>(outputs, in.channels, places(), in.rows.count * in.columns.count);
  }

  // Of outputs [begin, begin + size) of all groups.
  void run(interval of, const convolution_space<T>& w) const {
    for (std::int64_t o = of.begin, end = of.begin + of.size; o < end;) {
      const std::int64_t g = o / outputs, m = o % outputs;
      const std::int64_t rows =
          gemm_panels::smaller(gemm_panels::smaller(end - o, outputs - m), convolution_panels::most_rows);
      for (std::int64_t c = 0, n = channels_at_once(); c < in.channels; c += n) {
        convolution_windows<T> x = in;
        x.channels = gemm_panels::smaller(in.channels - c, n);
        x.data += (g * in.channels + c) * in.stride.of[1];
        for (std::int64_t k = 0; k < x.depth(); k += convolution_panels::most_columns)
          multiply(x, g * outputs + m, c, rows, k, gemm_panels::smaller(x.depth() - k, convolution_panels::most_columns), w);
      }
      o += rows;
    }
  }

 private:
  // Channels whose windows are computed together: all taps of each, so that what is written lies together, in pieces of like size.
  std::int64_t channels_at_once() const {
    const std::int64_t most = convolution_panels::most_columns / (in.rows.count * in.columns.count);
    if (most < 2) return 1;
    const std::int64_t pieces = (in.channels + most - 1) / most, each = (in.channels + pieces - 1) / pieces;
    return gemm_panels::smaller(each < 16 ? each : gemm_panels::round_up(each, 16), most);
  }
  // Of outputs [o, o + rows) and elements [k, k + columns) of x's windows, whose first channel is c of its group.
  void multiply(const convolution_windows<T>& x, std::int64_t o, std::int64_t c, std::int64_t rows, std::int64_t k,
                std::int64_t columns, const convolution_space<T>& w) const {
    convolution_windows<T> y = dy;
    y.data += o * dy.stride.of[1];
    y.channels = rows;
    const place_stride from(images, y.rows, y.columns, y.stride);
    const bool across = x.by_places();
    const matrix_view<T> sum = across ? matrix_view<T>{w.results, convolution_panels::line(columns), 1}
                                      : matrix_view<T>{w.results, 1, convolution_panels::line(rows)};
    const std::int64_t all = places(), block = gemm_panels::depth_of(all);
    if (all == 0) gemm<T>(rows, columns, 0, T(1), {nullptr, 0, 0}, {nullptr, 0, 0}, T(0), sum, w.product);
    for (std::int64_t at = 0; at < all; at += block) {
      const std::int64_t n = gemm_panels::smaller(all - at, block);
      const matrix_view<const T> a = from.in_all != 0
                                         ? matrix_view<const T>{y.data + at * from.in_all, y.stride.of[1], from.in_all}
                                         : y.gather(0, rows, at, n, w.weights);
      const matrix_view<const T> b = x.gather(k, columns, at, n, w.windows);
      gemm<T>(rows, columns, n, T(1), a, {b.data, b.col, b.row}, at == 0 ? T(0) : T(1), sum, w.product);
    }
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t e = k; e < k + columns;) {  // a tap at a time
        const std::int64_t tap = e / x.channels, first = e % x.channels,
                           n = gemm_panels::smaller(x.channels - first, k + columns - e);
        T* const to = out + stored(o + r, c + first, tap / in.columns.count, tap % in.columns.count);
        const T* const s = sum.data + r * sum.row + (e - k) * sum.col;
        for (std::int64_t i = 0; i < n; ++i) to[i * stored.of[1]] = s[i * sum.col];
        e += n;
      }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

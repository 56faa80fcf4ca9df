// SPDX-License-Identifier: Apache-2.0
// Convolutions an element of the result at a time, by one formula for constants, for exact integers and for devices. Price: no
// tiling; every element reads its whole window. Blocks may have any strides.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Where the elements of a block of four dims lie.
struct convolution_strides {
  std::int64_t of[4] = {0, 0, 0, 0};
  constexpr std::int64_t operator()(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return a * of[0] + b * of[1] + c * of[2] + d * of[3];
  }
};

// This rank's blocks: extents (batch, channels, height, width) of x, (outputs, channels of a group) of the weight and its window,
// and y's height and width; strides of x, of the weight and of y. Where channels or outputs are cut there is one group; where height or
// width are, the padding is what is missing in front of the block of x that the block of y reads, and behind it.
struct convolution_blocks {
  std::int64_t n = 0, c = 0, h = 0, w = 0, o = 0, i = 0, kh = 0, kw = 0, oh = 0, ow = 0;
  convolution_attributes a{};
  convolution_strides x{}, weight{}, y{};

  // The row of x that y's row t and the window's row p meet, or -1.
  constexpr std::int64_t row(std::int64_t t, std::int64_t p) const {
    const std::int64_t r = t * a.stride[0] - a.padding[0] + p * a.dilation[0];
    return r >= 0 && r < h ? r : -1;
  }
  constexpr std::int64_t column(std::int64_t t, std::int64_t q) const {
    const std::int64_t r = t * a.stride[1] - a.padding[1] + q * a.dilation[1];
    return r >= 0 && r < w ? r : -1;
  }
  // The row of y, if any, that row r of x and the window's row p meet.
  constexpr std::int64_t row_of(std::int64_t r, std::int64_t p) const { return met(r, p, 0, oh); }
  constexpr std::int64_t column_of(std::int64_t r, std::int64_t q) const { return met(r, q, 1, ow); }
  constexpr std::int64_t outputs_of_group() const { return o / a.groups; }

 private:
  constexpr std::int64_t met(std::int64_t r, std::int64_t p, int d, std::int64_t end) const {
    const std::int64_t t = r + a.padding[d] - p * a.dilation[d];
    return t >= 0 && t % a.stride[d] == 0 && t / a.stride[d] < end ? t / a.stride[d] : -1;
  }
};

// x, weight, y: numbers of the operands that they are, or -1 of the result.
template <class T>
constexpr convolution_blocks blocks_of(const kernel_arguments<T>& k, int x, int weight, int y) {
  const auto extent = [&](int operand, int d) { return operand < 0 ? k.extent(d) : k.extent(operand, d); };
  const auto strides = [&](int operand) {
    convolution_strides s;
    for (int d = 0; d < 4; ++d) s.of[d] = operand < 0 ? k.stride(d) : k.stride(operand, d);
    return s;
  };
  convolution_blocks b;
  b.a = k.template attributes<convolution_attributes>();
  b.n = extent(x, 0);
  b.c = extent(x, 1);
  b.h = extent(x, 2);
  b.w = extent(x, 3);
  b.o = extent(weight, 0);
  b.i = extent(weight, 1);
  b.kh = extent(weight, 2);
  b.kw = extent(weight, 3);
  b.oh = extent(y, 2);
  b.ow = extent(y, 3);
  const auto number = [](int operand) { return operand < 0 ? int{runtime::result} : operand; };
  const auto is_whole = [&](int operand, int d) {
    return k.extent(number(operand), d) == k.whole_extent(number(operand), d);
  };
  const std::int64_t read[] = {b.h, b.w}, made[] = {b.oh, b.ow}, kernel[] = {b.kh, b.kw};
  for (int d = 0; d < 2; ++d) {
    if (made[d] == 0 || (is_whole(x, 2 + d) && is_whole(y, 2 + d))) continue;
    const std::int64_t before = b.a.padding[d] + k.origin(number(x), 2 + d) - k.origin(number(y), 2 + d) * b.a.stride[d];
    const std::int64_t end = (made[d] - 1) * b.a.stride[d] + b.a.dilation[d] * (kernel[d] - 1) + 1;
    b.a.padding[d] = static_cast<std::int16_t>(before);
    b.a.further[d] = static_cast<std::int32_t>(end - 2 * before - read[d]);
  }
  b.x = strides(x);
  b.weight = strides(weight);
  b.y = strides(y);
  return b;
}

// Elements of the results; Sum: what products are added in. Each names its element as the result's dims do.
struct convolution_result {
  template <class Sum, class T>
  static constexpr T at(const convolution_blocks& b, const T* x, const T* weight, std::int64_t n, std::int64_t o,
                        std::int64_t u, std::int64_t v) {
    const std::int64_t first = o / b.outputs_of_group() * b.i;
    Sum sum = Sum(0);
    for (std::int64_t i = 0; i < b.i; ++i)
      for (std::int64_t p = 0; p < b.kh; ++p) {
        const std::int64_t r = b.row(u, p);
        if (r < 0) continue;
        for (std::int64_t q = 0; q < b.kw; ++q)
          if (const std::int64_t s = b.column(v, q); s >= 0)
            sum = sum + Sum(x[b.x(n, first + i, r, s)]) * Sum(weight[b.weight(o, i, p, q)]);
      }
    return T(sum);
  }
};
struct convolution_dx_result {
  template <class Sum, class T>
  static constexpr T at(const convolution_blocks& b, const T* dy, const T* weight, std::int64_t n, std::int64_t c,
                        std::int64_t r, std::int64_t s) {
    const std::int64_t i = c % b.i, first = c / b.i * b.outputs_of_group();
    Sum sum = Sum(0);
    for (std::int64_t o = first; o < first + b.outputs_of_group(); ++o)
      for (std::int64_t p = 0; p < b.kh; ++p) {
        const std::int64_t u = b.row_of(r, p);
        if (u < 0) continue;
        for (std::int64_t q = 0; q < b.kw; ++q)
          if (const std::int64_t v = b.column_of(s, q); v >= 0)
            sum = sum + Sum(dy[b.y(n, o, u, v)]) * Sum(weight[b.weight(o, i, p, q)]);
      }
    return T(sum);
  }
};
struct convolution_dw_result {
  template <class Sum, class T>
  static constexpr T at(const convolution_blocks& b, const T* dy, const T* x, std::int64_t o, std::int64_t i, std::int64_t p,
                        std::int64_t q) {
    const std::int64_t c = o / b.outputs_of_group() * b.i + i;
    Sum sum = Sum(0);
    for (std::int64_t n = 0; n < b.n; ++n)
      for (std::int64_t u = 0; u < b.oh; ++u) {
        const std::int64_t r = b.row(u, p);
        if (r < 0) continue;
        for (std::int64_t v = 0; v < b.ow; ++v)
          if (const std::int64_t s = b.column(v, q); s >= 0) sum = sum + Sum(dy[b.y(n, o, u, v)]) * Sum(x[b.x(n, c, r, s)]);
      }
    return T(sum);
  }
};

// A result's extents and strides, and its element of number `at` in row-major order, wherever that is stored.
struct convolution_places {
  std::int64_t extent[4] = {0, 0, 0, 0};
  convolution_strides stored{};

  template <class Result, class Sum, class T>
  constexpr void put(const convolution_blocks& b, const T* x, const T* y, T* out, std::int64_t at) const {
    const std::int64_t d = at % extent[3], c = at / extent[3] % extent[2], e = at / (extent[3] * extent[2]);
    const std::int64_t f = e % extent[1], n = e / extent[1];
    out[stored(n, f, c, d)] = Result::template at<Sum>(b, x, y, n, f, c, d);
  }
};
template <class T>
constexpr convolution_places places_of(const kernel_arguments<T>& k) {
  convolution_places p;
  for (int d = 0; d < 4; ++d) {
    p.extent[d] = k.extent(d);
    p.stored.of[d] = k.stride(d);
  }
  return p;
}
template <class Result, class T>
constexpr void convolve_plainly(const kernel_arguments<T>& k, const convolution_blocks& b) {
  const convolution_places places = places_of(k);
  const interval of = k.share(k.size());
  for (std::int64_t at = of.begin; at < of.begin + of.size; ++at)
    places.put<Result, typename math<T>::accumulator>(b, k.in(0), k.in(1), k.out(), at);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

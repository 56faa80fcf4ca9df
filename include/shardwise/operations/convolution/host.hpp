// SPDX-License-Identifier: Apache-2.0
// Plain kernels of convolutions: an element of the result at a time, by one formula for hosts and devices. Price: no tiling;
// every element reads its whole window.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Where the elements of a block with four dims lie.
struct image_strides {
  std::int64_t step[4]{};
  constexpr std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t r, std::int64_t s) const {
    return n * step[0] + c * step[1] + r * step[2] + s * step[3];
  }
};

// Extents of this rank's blocks: (batch, channels, height, width) of x, (outputs, channels of a group) of the weight and its window,
// and y's height and width. Where channels or outputs are cut there is one group.
struct convolution_blocks {
  std::int64_t n = 0, c = 0, h = 0, w = 0, o = 0, i = 0, kh = 0, kw = 0, oh = 0, ow = 0;
  convolution_attributes a{};
  image_strides x, weight, y;

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

template <class T>
constexpr convolution_blocks blocks_of(const kernel_arguments<T>& k, int x, int weight, int y) {
  const auto extent = [&](int operand, int d) { return operand < 0 ? k.extent(d) : k.extent(operand, d); };
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
  for (int d = 0; d < 4; ++d) {
    const auto stride = [&](int operand) { return operand < 0 ? k.stride(d) : k.stride(operand, d); };
    b.x.step[d] = stride(x);
    b.weight.step[d] = stride(weight);
    b.y.step[d] = stride(y);
  }
  return b;
}

// Element `at` of the result, counted row-major, in its place; Sum: what products are added in.
template <class Sum, class T>
constexpr void convolution_at(const convolution_blocks& b, const T* x, const T* weight, std::int64_t at, T* y) {
  const std::int64_t v = at % b.ow, u = at / b.ow % b.oh, o = at / (b.ow * b.oh) % b.o, n = at / (b.ow * b.oh * b.o);
  const std::int64_t first = o / b.outputs_of_group() * b.i;
  Sum sum = Sum(0);
  for (std::int64_t i = 0; i < b.i; ++i)
    for (std::int64_t p = 0; p < b.kh; ++p) {
      const std::int64_t r = b.row(u, p);
      if (r < 0) continue;
      for (std::int64_t q = 0; q < b.kw; ++q)
        if (const std::int64_t s = b.column(v, q); s >= 0)
          sum = sum + Sum(x[b.x.at(n, first + i, r, s)]) * Sum(weight[b.weight.at(o, i, p, q)]);
    }
  y[b.y.at(n, o, u, v)] = T(sum);
}
template <class Sum, class T>
constexpr void convolution_dx_at(const convolution_blocks& b, const T* dy, const T* weight, std::int64_t at, T* dx) {
  const std::int64_t s = at % b.w, r = at / b.w % b.h, c = at / (b.w * b.h) % b.c, n = at / (b.w * b.h * b.c);
  const std::int64_t i = c % b.i, first = c / b.i * b.outputs_of_group();
  Sum sum = Sum(0);
  for (std::int64_t o = first; o < first + b.outputs_of_group(); ++o)
    for (std::int64_t p = 0; p < b.kh; ++p) {
      const std::int64_t u = b.row_of(r, p);
      if (u < 0) continue;
      for (std::int64_t q = 0; q < b.kw; ++q)
        if (const std::int64_t v = b.column_of(s, q); v >= 0)
          sum = sum + Sum(dy[b.y.at(n, o, u, v)]) * Sum(weight[b.weight.at(o, i, p, q)]);
    }
  dx[b.x.at(n, c, r, s)] = T(sum);
}
template <class Sum, class T>
constexpr void convolution_dw_at(const convolution_blocks& b, const T* dy, const T* x, std::int64_t at, T* dw) {
  const std::int64_t q = at % b.kw, p = at / b.kw % b.kh, i = at / (b.kw * b.kh) % b.i, o = at / (b.kw * b.kh * b.i);
  const std::int64_t c = o / b.outputs_of_group() * b.i + i;
  Sum sum = Sum(0);
  for (std::int64_t n = 0; n < b.n; ++n)
    for (std::int64_t u = 0; u < b.oh; ++u) {
      const std::int64_t r = b.row(u, p);
      if (r < 0) continue;
      for (std::int64_t v = 0; v < b.ow; ++v)
        if (const std::int64_t s = b.column(v, q); s >= 0)
          sum = sum + Sum(dy[b.y.at(n, o, u, v)]) * Sum(x[b.x.at(n, c, r, s)]);
    }
  dw[b.weight.at(o, i, p, q)] = T(sum);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::conv2d> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const auto b = host::blocks_of(k, 0, 1, -1);
    const interval of = k.share(k.size());
    for (std::int64_t at = of.begin; at < of.begin + of.size; ++at)
      host::convolution_at<typename host::math<T>::accumulator>(b, k.in(0), k.in(1), at, k.out());
  }
};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::conv2d_dx> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const auto b = host::blocks_of(k, -1, 1, 0);
    const interval of = k.share(k.size());
    for (std::int64_t at = of.begin; at < of.begin + of.size; ++at)
      host::convolution_dx_at<typename host::math<T>::accumulator>(b, k.in(0), k.in(1), at, k.out());
  }
};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::conv2d_dw> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const auto b = host::blocks_of(k, 1, -1, 0);
    const interval of = k.share(k.size());
    for (std::int64_t at = of.begin; at < of.begin + of.size; ++at)
      host::convolution_dw_at<typename host::math<T>::accumulator>(b, k.in(0), k.in(1), at, k.out());
  }
};

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// Kernels of convolutions on the host: products of blocks of windows, loops for groups of few channels; exact integers and constants
// plainly. Where a library is registered (runtime/host/convolution_library.hpp) it is asked first.
#pragma once

#include <type_traits>

#include <shardwise/operations/convolution/host_depthwise_weights.hpp>
#include <shardwise/operations/convolution/host_library.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

namespace convolution_detail {

// Law: what lies outside of x is not multiplied, so that a factor that is no finite number is seen through elements of x alone (0 times
// infinity). Blocks of windows hold zeros there; results with such a factor are computed plainly, and only those: `put` gives one,
// whose places are those of `in`.
template <class T, class Put>
void put_plainly(const convolution_product<T>& c, interval places, const Put& put) {
  for (std::int64_t o = 0; o < c.groups * c.outputs; ++o) {
    T worst = T(0);
    const T* const w = c.at(o / c.outputs, o % c.outputs);
    for (std::int64_t p = 0; p < c.in.rows.count; ++p)
      for (std::int64_t q = 0; q < c.in.columns.count; ++q)
        for (std::int64_t j = 0; j < c.in.channels; ++j)
          worst = worst + w[p * c.of_row + q * c.of_column + j * c.of_channel] * T(0);
    if (worst == T(0)) continue;
    const std::int64_t columns = c.in.columns.places;
    for (std::int64_t at = places.begin; at < places.begin + places.size; ++at)
      put(at / c.in.places_of_image(), o, at / columns % c.in.rows.places, at % columns);
  }
}

template <class T, class Put>
void convolve(const convolution_product<T>& c, const kernel_arguments<T>& k, const Put& put) {
  const convolution_space<T> space(k.scratch(), c.panels());
  const interval places = k.share(c.images * c.in.places_of_image());
  if (is_depthwise(c)) convolve_depthwise(c, places, space);
  else c.run(places, space);
  if (c.is_padded() && !is_finite_piece(k, 1)) put_plainly(c, places, put);
}

template <class T>
convolution_product<T> product_of(const convolution_blocks& b, const kernel_arguments<T>& k) {
  convolution_product<T> c;
  c.out = k.out();
  c.weight = k.in(1);
  c.images = b.n;
  c.groups = b.a.groups;
  return c;
}

template <class T>
__attribute__((noinline)) void convolve(const convolution_blocks& b, const kernel_arguments<T>& k) {
  convolution_product<T> c = product_of(b, k);
  c.in = {k.in(0), b.x, taps_of(b, 0), taps_of(b, 1), b.i};
  c.stored = b.y;
  c.of_output = b.weight.of[0];
  c.of_channel = b.weight.of[1];
  c.of_row = b.weight.of[2];
  c.of_column = b.weight.of[3];
  c.outputs = b.outputs_of_group();
  c.of_group = c.outputs * c.of_output;
  convolve(c, k, [&](std::int64_t n, std::int64_t o, std::int64_t u, std::int64_t v) {
    k.out()[b.y(n, o, u, v)] = convolution_result::at<typename math<T>::accumulator>(b, k.in(0), k.in(1), n, o, u, v);
  });
}

// Phase by phase of the strides: each is a convolution of dy, of stride 1.
template <class T>
__attribute__((noinline)) void convolve_back(const convolution_blocks& b, const kernel_arguments<T>& k) {
  convolution_product<T> c = product_of(b, k);
  c.in.data = k.in(0);
  c.in.stride = b.y;
  c.in.channels = b.outputs_of_group();
  c.stored = b.x;
  c.of_output = b.weight.of[1];
  c.of_channel = b.weight.of[0];
  c.outputs = b.i;
  c.of_group = c.in.channels * c.of_channel;
  for (int d = 0; d < 2; ++d) c.stored.of[2 + d] = b.x.of[2 + d] * b.a.stride[d];
  for (std::int64_t f = 0; f < b.a.stride[0]; ++f)
    for (std::int64_t g = 0; g < b.a.stride[1]; ++g) {
      c.in.rows = taps_of_phase(b, 0, f);
      c.in.columns = taps_of_phase(b, 1, g);
      if (c.in.places_of_image() == 0) continue;
      c.out = k.out() + f * b.x.of[2] + g * b.x.of[3];
      c.weight = k.in(1);
      if (c.in.depth() > 0) c.weight += c.in.rows.first * b.weight.of[2] + c.in.columns.first * b.weight.of[3];
      c.of_row = c.in.rows.apart * b.weight.of[2];
      c.of_column = c.in.columns.apart * b.weight.of[3];
      convolve(c, k, [&](std::int64_t n, std::int64_t i, std::int64_t r, std::int64_t s) {
        const std::int64_t at_r = r * b.a.stride[0] + f, at_s = s * b.a.stride[1] + g;
        k.out()[b.x(n, i, at_r, at_s)] =
            convolution_dx_result::at<typename math<T>::accumulator>(b, k.in(0), k.in(1), n, i, at_r, at_s);
      });
    }
}

// Output by output, the gradients of its weights where its cotangents are not all finite.
template <class T>
void weights_plainly(const convolution_blocks& b, const kernel_arguments<T>& k, const convolution_strides& stored,
                     interval outputs) {
  for (std::int64_t o = outputs.begin; o < outputs.begin + outputs.size; ++o) {
    T worst = T(0);
    for (std::int64_t n = 0; n < b.n; ++n)
      for (std::int64_t u = 0; u < b.oh; ++u) {
        const T* const row = k.in(0) + b.y(n, o, u, 0);
        for (std::int64_t v = 0; v < b.ow; ++v) worst = worst + row[v * b.y.of[3]] * T(0);
      }
    if (worst == T(0)) continue;
    for (std::int64_t i = 0; i < b.i; ++i)
      for (std::int64_t p = 0; p < b.kh; ++p)
        for (std::int64_t q = 0; q < b.kw; ++q)
          k.out()[stored(o, i, p, q)] =
              convolution_dw_result::at<typename math<T>::accumulator>(b, k.in(0), k.in(1), o, i, p, q);
  }
}

template <class T>
__attribute__((noinline)) void convolve_weights(const convolution_blocks& b, const kernel_arguments<T>& k) {
  convolution_weights_product<T> c;
  c.in = {k.in(1), b.x, taps_of(b, 0), taps_of(b, 1), b.i};
  c.dy = {k.in(0), b.y, {b.oh, b.oh}, {b.ow, b.ow}, b.outputs_of_group()};
  c.out = k.out();
  c.stored = b.weight;
  c.images = b.n;
  c.outputs = b.outputs_of_group();
  const convolution_space<T> space(k.scratch(), c.panels());
  const interval outputs = k.share(b.o);
  if (is_depthwise(c, b.a.groups)) return convolve_depthwise(c, outputs, space);
  c.run(outputs, space);
  if ((c.in.rows.is_padded() || c.in.columns.is_padded()) && !is_finite_piece(k, 0))
    weights_plainly(b, k, c.stored, outputs);
}

}  // namespace convolution_detail

// Numbers of the operands that are x, the weight and y; -1: the result.
template <class Result, int X, int Weight, int Y>
struct convolution_kernel {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::is_constant_evaluated()) return run_now(k);
    }
    convolve_plainly<Result>(k, blocks_of(k, X, Weight, Y));
  }

 private:
  template <class T>
  static void run_now(const kernel_arguments<T>& k) {
    const convolution_blocks b = blocks_of(k, X, Weight, Y);
    if (k.size() == 0) return;
    const runtime::convolution_library* const library = runtime::used_convolution_library();
    if (!library) return run_built_in(b, k);
    const bool finite = convolution_detail::is_finite_factor<X, Weight, Y>(b, k);
    if (k.shares() == 1) return run_either(*library, b, k, finite);
    // Law: the built-in kernel's bits are those of any number of threads, so it cuts its own work where no part would be taken.
    if (!std::is_same_v<T, float> || !finite) return run_built_in(b, k);
    const convolution_detail::convolution_part<X, Weight, Y, T> part(b, k);
    const kernel_arguments<T> of = part.arguments();
    if (of.size() > 0) run_either(*library, blocks_of(of, X, Weight, Y), of, finite);
  }
  template <class T>
  static void run_either(const runtime::convolution_library& library, const convolution_blocks& b,
                         const kernel_arguments<T>& k, bool finite) {
    if (!convolution_detail::run_library<X, Weight, Y>(library, b, k, finite)) run_built_in(b, k);
  }
  template <class T>
  static void run_built_in(const convolution_blocks& b, const kernel_arguments<T>& k) {
    if constexpr (Y < 0) convolution_detail::convolve(b, k);
    else if constexpr (X < 0) convolution_detail::convolve_back(b, k);
    else convolution_detail::convolve_weights(b, k);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::conv2d> : host::convolution_kernel<host::convolution_result, 0, 1, -1> {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::conv2d_dx> : host::convolution_kernel<host::convolution_dx_result, -1, 1, 0> {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::conv2d_dw> : host::convolution_kernel<host::convolution_dw_result, 1, -1, 0> {};

}  // namespace shardwise::inline v0_1

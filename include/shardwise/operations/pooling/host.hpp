// SPDX-License-Identifier: Apache-2.0
// Plain kernels of pooling: a window for each element of the result, by one function for hosts and devices.
#pragma once

#include <shardwise/graph/functions/pooling.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Height and width of this rank's planes of x and of y, as many as there are images times channels. Where these are cut, the block of x
// begins at `origin` of planes that are `whole`, and the padding is what is missing in front of what the block of y reads.
struct pool_planes {
  std::int64_t planes = 0, h = 0, w = 0, oh = 0, ow = 0;
  std::int64_t origin[2] = {0, 0}, whole[2] = {0, 0};
  std::int64_t padding[2] = {0, 0};  // in front of this block, negative where its windows begin later
  pool_attributes a{};

  // Every `step`-th row or column from begin, before end.
  struct window_rows {
    std::int64_t begin, end, step;
    constexpr bool has(std::int64_t r) const { return r >= begin && r < end && (r - begin) % step == 0; }
  };
  // Rows (d 0) or columns of x in window t.
  constexpr window_rows window(int d, std::int64_t t) const {
    const std::int64_t first = t * a.stride[d] - padding[d], end = first + a.reach(d), extent = d == 0 ? h : w;
    const std::int64_t step = a.dilation[d], begin = first < 0 ? first + (step - 1 - first) / step * step : first;
    return {begin, end < extent ? end : extent, step};
  }
  // Windows between whose first and last row or column r lies.
  constexpr interval windows(int d, std::int64_t r) const {
    const std::int64_t at = r + padding[d], extent = d == 0 ? oh : ow, reach = a.reach(d);
    const std::int64_t first = at < reach ? 0 : (at - reach) / a.stride[d] + 1, last = at / a.stride[d] + 1;
    const std::int64_t end = last < extent ? last : extent;
    return {first, end > first ? end - first : 0};
  }
  // What the sum of a window is divided by.
  constexpr std::int64_t count(std::int64_t u, std::int64_t v) const {
    return a.divisor != 0 ? a.divisor : counted(0, u) * counted(1, v);
  }
  // Of a place in this rank's plane of x its place in the whole plane.
  constexpr std::int64_t in_whole(std::int64_t place) const {
    return (place / w + origin[0]) * whole[1] + place % w + origin[1];
  }

 private:
  // Rows or columns of whole planes, and of their padding if that counts, in window t.
  constexpr std::int64_t counted(int d, std::int64_t t) const {
    const std::int64_t beyond = a.counts_padding != 0 ? a.padding[d] : 0;
    const std::int64_t first = t * a.stride[d] - padding[d] + origin[d], end = first + a.kernel[d], last = whole[d] + beyond;
    return (end < last ? end : last) - (first < -beyond ? -beyond : first);
  }
};
// x: the operand's number, or -1 of the result; the other one is y. `out`, `at`: the result's extents and where it begins.
template <class T>
constexpr pool_planes pool_planes_of(const kernel_arguments<T>& k, int x, const std::int64_t (&out)[4],
                                     const std::int64_t (&at)[4]) {
  const auto of = [&](bool is_operand, int d) { return is_operand ? k.extent(0, d) : out[d]; };
  const auto begin = [&](bool is_operand, int d) { return is_operand ? k.origin(0, d) : at[d]; };
  pool_planes p;
  p.a = k.template attributes<pool_attributes>();
  p.planes = k.extent(0, 0) * k.extent(0, 1);
  p.h = of(x == 0, 2);
  p.w = of(x == 0, 3);
  p.oh = of(x != 0, 2);
  p.ow = of(x != 0, 3);
  for (int d = 0; d < 2; ++d) {
    p.origin[d] = begin(x == 0, 2 + d);
    p.whole[d] = x == 0 ? k.whole_extent(0, 2 + d) : p.a.extent[d];
    if ((d == 0 ? p.oh : p.ow) > 0) p.padding[d] = p.a.padding[d] + p.origin[d] - begin(x != 0, 2 + d) * p.a.stride[d];
  }
  return p;
}

// Where the largest element of y's element `at` stands in its plane. A NaN is not equal to itself.
template <class M, class T>
constexpr std::int64_t largest_of_window(const pool_planes& b, const T* x, std::int64_t at) {
  const T* const plane = x + at / (b.oh * b.ow) * b.h * b.w;
  const auto rows = b.window(0, at / b.ow % b.oh), columns = b.window(1, at % b.ow);
  std::int64_t place = rows.begin * b.w + columns.begin;
  T best = plane[place];
  for (std::int64_t r = rows.begin; r < rows.end; r += rows.step)
    for (std::int64_t s = columns.begin; s < columns.end; s += columns.step) {
      const T v = plane[r * b.w + s];
      if (best == best && (!(v == v) || M::less(best, v))) {
        best = v;
        place = r * b.w + s;
      }
    }
  return place;
}
template <class M, class Sum, class T>
constexpr T mean_of_window(const pool_planes& b, const T* x, std::int64_t at) {
  const T* const plane = x + at / (b.oh * b.ow) * b.h * b.w;
  const std::int64_t u = at / b.ow % b.oh, v = at % b.ow;
  const auto rows = b.window(0, u), columns = b.window(1, v);  // without dilation
  Sum sum = Sum(0);
  for (std::int64_t r = rows.begin; r < rows.end; ++r)
    for (std::int64_t s = columns.begin; s < columns.end; ++s) sum = sum + Sum(plane[r * b.w + s]);
  return T(sum / Sum(M::from(static_cast<double>(b.count(u, v)))));
}
template <class M, class Sum, class T>
constexpr T mean_of_windows_back(const pool_planes& b, const T* dy, std::int64_t at) {
  const T* const plane = dy + at / (b.h * b.w) * b.oh * b.ow;
  const interval rows = b.windows(0, at / b.w % b.h), columns = b.windows(1, at % b.w);
  Sum sum = Sum(0);
  for (std::int64_t u = rows.begin; u < rows.begin + rows.size; ++u)
    for (std::int64_t v = columns.begin; v < columns.begin + columns.size; ++v)
      sum = sum + Sum(plane[u * b.ow + v]) / Sum(M::from(static_cast<double>(b.count(u, v))));
  return T(sum);
}

// The elements of dy that belong to windows whose largest is x's element `at`.
template <class Sum, class T>
constexpr T sum_of_positions(const pool_planes& b, const T* dy, const std::int32_t* places, std::int64_t at) {
  const std::int64_t first = at / (b.h * b.w) * b.oh * b.ow, own = b.in_whole(at % (b.h * b.w));
  const std::int64_t row = at / b.w % b.h, column = at % b.w;
  const interval rows = b.windows(0, row), columns = b.windows(1, column);
  Sum sum = Sum(0);
  for (std::int64_t u = rows.begin; u < rows.begin + rows.size; ++u)
    for (std::int64_t v = columns.begin; v < columns.begin + columns.size; ++v)
      if (places[first + u * b.ow + v] == own && b.window(0, u).has(row) && b.window(1, v).has(column))
        sum = sum + Sum(dy[first + u * b.ow + v]);
  return T(sum);
}
// The element at a window's position; 0 where that is outside of the window, so that this and the sums are each other's transposes
// whatever the positions are.
template <class T>
constexpr T at_position(const pool_planes& b, const T* x, const std::int32_t* places, std::int64_t at) {
  const std::int64_t row = places[at] / b.whole[1] - b.origin[0], column = places[at] % b.whole[1] - b.origin[1];
  const bool inside = places[at] >= 0 && b.window(0, at / b.ow % b.oh).has(row) && b.window(1, at % b.ow).has(column);
  return inside ? x[at / (b.oh * b.ow) * b.h * b.w + row * b.w + column] : T(0);
}

// An element of the result of each operation that has one result: of its operand and, where it has them, positions.
struct mean_element {
  template <class M, class Sum, class T>
  static constexpr T at(const pool_planes& b, const T* x, const std::int32_t*, std::int64_t i) {
    return mean_of_window<M, Sum>(b, x, i);
  }
};
struct mean_back_element {
  template <class M, class Sum, class T>
  static constexpr T at(const pool_planes& b, const T* dy, const std::int32_t*, std::int64_t i) {
    return mean_of_windows_back<M, Sum>(b, dy, i);
  }
};
struct position_element {
  template <class M, class Sum, class T>
  static constexpr T at(const pool_planes& b, const T* x, const std::int32_t* places, std::int64_t i) {
    return at_position(b, x, places, i);
  }
};
struct position_back_element {
  template <class M, class Sum, class T>
  static constexpr T at(const pool_planes& b, const T* dy, const std::int32_t* places, std::int64_t i) {
    return sum_of_positions<Sum>(b, dy, places, i);
  }
};

template <class T>
constexpr pool_planes one_result_planes(const kernel_arguments<T>& k, int x) {
  constexpr int r = runtime::result;
  return pool_planes_of(k, x, {k.extent(0), k.extent(1), k.extent(2), k.extent(3)},
                        {k.origin(r, 0), k.origin(r, 1), k.origin(r, 2), k.origin(r, 3)});
}
// Of several results one may be unwanted, and has no extents.
template <class T>
constexpr pool_planes max_pool_planes(const kernel_arguments<T>& k) {
  const int some = k.wanted(0) ? 0 : 1;
  return pool_planes_of(k, 0, {0, 0, k.extent_of_result(some, 2), k.extent_of_result(some, 3)},
                        {0, 0, k.origin_of_result(some, 2), k.origin_of_result(some, 3)});
}

// X: the operand's number that is x, or -1 of the result.
template <int X, class Element>
struct pool_kernel {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const pool_planes b = one_result_planes(k, X);
    const interval of = k.share(k.size());
    for (std::int64_t i = of.begin; i < of.begin + of.size; ++i)
      k.out()[i] = Element::template at<math<T>, typename math<T>::accumulator>(b, k.in(0), k.index(), i);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::max_pool2d> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    if (!k.wanted(0) && !k.wanted(1)) return;
    const host::pool_planes b = host::max_pool_planes(k);
    const interval of = k.share(b.planes * b.oh * b.ow);
    for (std::int64_t at = of.begin; at < of.begin + of.size; ++at) {
      const std::int64_t place = host::largest_of_window<host::math<T>>(b, k.in(0), at);
      if (k.wanted(0)) k.out(0)[at] = k.in(0)[at / (b.oh * b.ow) * b.h * b.w + place];
      if (k.wanted(1)) k.index_out(1)[at] = static_cast<std::int32_t>(b.in_whole(place));
    }
  }
};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::max_pool2d_dx> : host::pool_kernel<-1, host::position_back_element> {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::max_pool2d_at> : host::pool_kernel<0, host::position_element> {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::avg_pool2d> : host::pool_kernel<0, host::mean_element> {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::avg_pool2d_dx> : host::pool_kernel<-1, host::mean_back_element> {};

}  // namespace shardwise::inline v0_1

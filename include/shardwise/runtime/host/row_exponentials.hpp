// SPDX-License-Identifier: Apache-2.0
// Exponentials of a row's elements and their sum, measured from the largest so that nothing overflows.
#pragma once

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/runtime/host/summation.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// What a row's elements are measured from before they are exponentiated: the largest, so that nothing overflows, but not an
// infinity, whose differences are no numbers.
template <class T>
constexpr T finite_or_zero(T top) {
  return top - top == T(0) ? top : T(0);
}

// o = exp(x - top): what lies apart is brought together first, for only then are exponentials fast.
template <class T, class S>
constexpr void exp_row(const T* x, std::int64_t n, S s, T top, T* o) {
  if constexpr (std::is_same_v<S, unit_stride>) {
    SHARDWISE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) o[i] = math<T>::exp(x[i] - top);
  } else {
    for (std::int64_t i = 0; i < n; ++i) o[i] = x[i * s] - top;
    independent_loop<T>(n, [=](std::int64_t i) { o[i] = math<T>::exp(o[i]); });
  }
}

// Sum of exp(x - top) over a row.
template <class T, class S>
constexpr T exp_total(const T* x, std::int64_t n, S s, T top) {
  using acc = typename math<T>::accumulator;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr std::int64_t piece = 256;
    T part[piece];
    staged_sum<acc> all;
    for (std::int64_t first = 0; first < n; first += piece) {
      const std::int64_t m = n - first < piece ? n - first : piece;
      exp_row(x + first * s, m, s, top, static_cast<T*>(part));
      const acc sum = sum_of(static_cast<const T*>(part), m, unit_stride{});
      if (n <= piece) return static_cast<T>(sum);
      all.add(sum);
    }
    return static_cast<T>(all.total());
  } else {
    acc total = acc(0);
    for (std::int64_t i = 0; i < n; ++i) total = total + math<T>::exp(x[i * s] - top);
    return static_cast<T>(total);
  }
}

template <class T, class S>
constexpr T top_of(const T* x, std::int64_t n, S s) {
  if constexpr (math<T>::ordered) return n > 0 ? largest_of(x, n, s) : math<T>::lowest();
  else return T(0);
}

}  // namespace detail

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END

// SPDX-License-Identifier: Apache-2.0
// Plain kernels of extremes along a dim: a line of the operand for each element of the results, by one function for hosts and devices.
#pragma once

#include <shardwise/graph/functions/extremes.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Extents of this rank's block before, along and behind the dim.
struct extreme_blocks {
  std::int64_t outer = 1, n = 0, inner = 1;
  constexpr std::int64_t lines() const { return outer * inner; }
};
template <class T>
constexpr extreme_blocks extreme_blocks_of(const kernel_arguments<T>& k) {
  const auto dim = static_cast<int>(k.template attributes<extreme_attributes>().dim);
  extreme_blocks b;
  for (int d = 0; d < dim; ++d) b.outer *= k.extent(0, d);
  b.n = k.extent(0, dim);
  for (int d = dim + 1; d < k.rank(0); ++d) b.inner *= k.extent(0, d);
  return b;
}

// Where the extreme of line `at` stands. A NaN is not equal to itself.
template <class M, bool Largest, class T>
constexpr std::int64_t extreme_place(const extreme_blocks& b, const T* x, std::int64_t at) {
  const T* const line = x + at / b.inner * b.n * b.inner + at % b.inner;
  std::int64_t place = 0;
  T best = line[0];
  for (std::int64_t i = 1; i < b.n && best == best; ++i) {
    const T v = line[i * b.inner];
    if (!(v == v) || (Largest ? M::less(best, v) : M::less(v, best))) {
      best = v;
      place = i;
    }
  }
  return place;
}

template <bool Largest>
struct extreme_kernel {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const extreme_blocks b = extreme_blocks_of(k);
    for (std::int64_t at = 0; at < b.lines(); ++at) {
      const std::int64_t place = extreme_place<math<T>, Largest>(b, k.in(0), at);
      if (k.wanted(0)) k.out(0)[at] = k.in(0)[(at / b.inner * b.n + place) * b.inner + at % b.inner];
      if (k.wanted(1)) k.index_out(1)[at] = static_cast<std::int32_t>(place);
    }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::max> : host::extreme_kernel<true> {};
template <>
struct SHARDWISE_HIDDEN host_kernel<custom::min> : host::extreme_kernel<false> {};

}  // namespace shardwise::inline v0_1

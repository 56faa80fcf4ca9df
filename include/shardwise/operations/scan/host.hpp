// SPDX-License-Identifier: Apache-2.0
// Running sums on the host, line by line.
#pragma once

#include <shardwise/graph/functions/rearrange.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/math.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Extents of this rank's block before, along and behind the dim.
struct scan_blocks {
  std::int64_t outer = 1, n = 0, inner = 1;
  bool back = false;
  constexpr std::int64_t lines() const { return outer * inner; }

  // Line `at`: added up in Sum, stored as T.
  template <class Sum, class T>
  constexpr void add_up(const T* x, T* y, std::int64_t at) const {
    const std::int64_t first = at / inner * n * inner + at % inner;
    Sum sum = Sum(0);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t place = first + (back ? n - 1 - i : i) * inner;
      sum = sum + static_cast<Sum>(x[place]);
      y[place] = static_cast<T>(sum);
    }
  }
};
template <class T>
constexpr scan_blocks scan_blocks_of(const kernel_arguments<T>& k) {
  const auto a = k.template attributes<scan_attributes>();
  scan_blocks b;
  for (int d = 0; d < a.dim; ++d) b.outer *= k.extent(0, d);
  b.n = k.extent(0, static_cast<int>(a.dim));
  for (int d = static_cast<int>(a.dim) + 1; d < k.rank(0); ++d) b.inner *= k.extent(0, d);
  b.back = a.back != 0;
  return b;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::cumsum> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const host::scan_blocks b = host::scan_blocks_of(k);
    const interval of = k.share(b.lines());
    for (std::int64_t at = of.begin; at < of.begin + of.size; ++at)
      b.template add_up<typename host::math<T>::accumulator>(k.in(0), k.out(), at);
  }
};

}  // namespace shardwise::inline v0_1

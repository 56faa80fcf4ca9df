// SPDX-License-Identifier: Apache-2.0
// What collectives of all host backends do to blocks: how two values combine, and layouts of parts of a block.
#pragma once

#include <type_traits>

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/host/norm_math.hpp>

namespace shardwise::inline v0_1::runtime {

// A NaN stays the largest and the smallest, as in the kernels, so that the ranks' number decides nothing.
template <class T>
constexpr T combine(reduction op, T a, T b) {
  switch (op) {
    case reduction::product: return a * b;
    case reduction::max: return a > b || !(a == a) ? a : b;
    case reduction::min: return a < b || !(a == a) ? a : b;
    case reduction::sum:
    case reduction::avg:
    case reduction::norm: break;
  }
  return a + b;  // of a mean and of norms, too: what stands around the sum is theirs
}

// x[i] = f(x[i])
template <class T, class F>
void each(T* x, std::int64_t n, F&& f) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = f(x[i]);
}

// What stands around the sums of a reduction, on the own part of what all ranks sent: norms are summed as powers. Integers
// are never norms.
template <class T>
void begin_reduction(const placement& by, T* x, std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>)
    if (by.is_norm()) each(x, n, [&](T v) { return host::norm_math<T>::power(v, by.order()); });
}
template <class T>
void end_reduction(const placement& by, T* x, std::int64_t n, int ranks) {
  if (by.op == reduction::avg) each(x, n, [&](T v) { return static_cast<T>(v / static_cast<T>(ranks)); });
  if constexpr (std::is_floating_point_v<T>)
    if (by.is_norm()) each(x, n, [&](T v) { return host::norm_math<T>::root(v, by.order()); });
}

inline layout flat_layout(std::int64_t n) {
  layout l;
  l.rank = 1;
  l.ext[0] = l.global[0] = n;
  l.str[0] = 1;
  return l;
}

// The layout of a dense block with dim d cut to `n`.
inline layout with_extent(layout l, int d, std::int64_t n) {
  l.ext[d] = n;
  l.make_dense();
  return l;
}

}  // namespace shardwise::inline v0_1::runtime

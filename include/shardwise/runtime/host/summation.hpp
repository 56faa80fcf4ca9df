// SPDX-License-Identifier: Apache-2.0
// How host kernels add many numbers: in several accumulators, and those in stages, so that the error grows with the logarithm
// of their number and not with it. Order and hence bits depend on extents and strides alone.
#pragma once

#include <type_traits>

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/math.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

struct as_it_is {
  template <class V>
  constexpr V operator()(V v) const {
    return v;
  }
};
struct squared {
  template <class V>
  constexpr V operator()(V v) const {
    return v * v;
  }
};

inline constexpr int sum_lanes = 16;

// Terms that come one after the other: every 64 become one of the next stage.
template <class A>
class staged_sum {
 public:
  constexpr void add(A v) {
    stage_[0] = stage_[0] + v;
    if (++count_ % 64 != 0) return;
    stage_[1] = stage_[1] + stage_[0];
    stage_[0] = A(0);
    if (count_ % 4096 != 0) return;
    stage_[2] = stage_[2] + stage_[1];
    stage_[1] = A(0);
  }
  constexpr A total() const { return stage_[2] + (stage_[1] + stage_[0]); }

 private:
  A stage_[3] = {A(0), A(0), A(0)};
  std::int64_t count_ = 0;
};

namespace detail {

// Terms [begin, end), of which there are few.
template <class A, class F>
constexpr A sum_piece(std::int64_t begin, std::int64_t end, const F& term) {
  A lane[sum_lanes];
  for (int k = 0; k < sum_lanes; ++k) lane[k] = A(0);
  std::int64_t i = begin;
  for (; i + sum_lanes <= end; i += sum_lanes)
    for (int k = 0; k < sum_lanes; ++k) lane[k] = lane[k] + term(i + k);
  for (int k = 0; i + k < end; ++k) lane[k] = lane[k] + term(i + k);
  for (int half = sum_lanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lane[k] = lane[k] + lane[k + half];
  return lane[0];
}

}  // namespace detail

// Sum of term(i), numbers of T's accumulator, for i in [0, n). Chooses no instruction set: for callers whose rows are worth
// one choice for all (widest).
template <class T, class F>
constexpr typename math<T>::accumulator sum_terms(std::int64_t n, const F& term) {
  using acc = typename math<T>::accumulator;
  constexpr std::int64_t piece = 1024;
  if (!std::is_floating_point_v<T> || n < 2 * sum_lanes) {
    acc a = acc(0), b = acc(0), c = acc(0), d = acc(0);
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) a = a + term(i), b = b + term(i + 1), c = c + term(i + 2), d = d + term(i + 3);
    for (; i < n; ++i) a = a + term(i);
    return (a + b) + (c + d);
  }
  staged_sum<acc> all;
  for (std::int64_t i = 0; i < n; i += piece) {
    const acc part = detail::sum_piece<acc>(i, n - i < piece ? n : i + piece, term);
    if (n <= piece) return part;
    all.add(part);
  }
  return all.total();
}

// Sum of value(x[i s]) for i in [0, n), terms and sums in the accumulator's type.
template <class T, class S, class F = as_it_is>
constexpr typename math<T>::accumulator sum_of(const T* x, std::int64_t n, S s, const F& value = {}) {
  using acc = typename math<T>::accumulator;
  return sum_terms<T>(n, [x, s, &value](std::int64_t i) { return value(static_cast<acc>(x[i * s])); });
}

// Largest of x[i s], n > 0; of a row with a NaN some element of it.
template <class T, class S>
constexpr T largest_of(const T* x, std::int64_t n, S s) {
  T top = x[0];
  std::int64_t i = 1;
  if constexpr (std::is_floating_point_v<T>) {
    if (n >= 2 * sum_lanes) {
      T lane[sum_lanes];
      for (int k = 0; k < sum_lanes; ++k) lane[k] = x[k * s];
      for (i = sum_lanes; i + sum_lanes <= n; i += sum_lanes)
        for (int k = 0; k < sum_lanes; ++k) lane[k] = math<T>::max(lane[k], x[(i + k) * s]);
      for (int half = sum_lanes / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) lane[k] = math<T>::max(lane[k], lane[k + half]);
      top = lane[0];
    }
  }
  for (; i < n; ++i) top = math<T>::max(top, x[i * s]);
  return top;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

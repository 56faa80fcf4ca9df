// SPDX-License-Identifier: Apache-2.0
// Formulas of losses that are elementwise, one for hosts and devices.
#pragma once

#include <shardwise/graph/functions/losses.hpp>
#include <shardwise/operations/activation/host.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1 {

// d of the difference, from both sides: a NaN is neither's.
template <>
struct SHARDWISE_HIDDEN formula<custom::smooth_l1> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T d, T beta) {
    const T size = m::less(d, T(0)) ? T(0) - d : d;
    return m::less(size, beta) ? d * d / (beta + beta) : size - beta / T(2);
  }
};
template <>
struct SHARDWISE_HIDDEN formula<custom::smooth_l1_dx> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T d, T beta) {
    const T size = m::less(d, T(0)) ? T(0) - d : d;
    const T sign = m::less(T(0), d) ? T(1) : m::less(d, T(0)) ? T(0) - T(1) : d;
    return dy * (m::less(size, beta) ? d / beta : sign);
  }
};

// max(x, 0) - x y + log(1 + e^-|x|): where the first two cancel they cancel exactly.
template <>
struct SHARDWISE_HIDDEN formula<custom::logits_loss> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T x, T y) {
    const T size = m::less(x, T(0)) ? x : T(0) - x;
    return ((m::less(x, T(0)) ? T(0) : x) - x * y) + host::further_math<m>::log1p(m::exp(size));
  }
};
template <>
struct SHARDWISE_HIDDEN formula<custom::logits_loss_dx> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T x, T y) {
    return dy * (T(1) / (T(1) + m::exp(T(0) - x)) - y);
  }
};
template <>
struct SHARDWISE_HIDDEN formula<custom::logits_loss_dtarget> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T x, T) {
    return dy * (T(0) - x);
  }
};

template <>
struct SHARDWISE_HIDDEN formula<custom::divergence> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T x, T y) {
    return (y == T(0) ? T(0) : y * m::log(y)) - y * x;
  }
};
template <>
struct SHARDWISE_HIDDEN formula<custom::divergence_dx> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T, T y) {
    return dy * (T(0) - y);
  }
};
template <>
struct SHARDWISE_HIDDEN formula<custom::divergence_dtarget> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T x, T y) {
    return dy * (m::log(y) + T(1) - x);
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_UNFUSED_END

// SPDX-License-Identifier: Apache-2.0
// Scalar functions of the host kernels, per element type; those of vector_math.hpp are what compilers vectorise.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/vector_math.hpp>
#include <shardwise/support/elementary.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Constant exponents whose powers are products, roots and quotients are computed as such: exact where the general function is
// not, and many times faster. Law, as in PyTorch: x^(1/2) is sqrt(x), hence no number at -infinity.
template <class M, class T>
T power_of(T x, T n) {
  if (n == T(2)) return x * x;
  if (n == T(0.5)) return M::sqrt(x);
  if (n == T(-1)) return T(1) / x;
  if (n == T(3)) return x * x * x;
  if (n == T(-0.5)) return T(1) / M::sqrt(x);
  if (n == T(-2)) return T(1) / (x * x);
  if (n == T(1)) return x;
  return elementary::pow(x, n);
}

// A trait, so that the rule proofs can run the same kernels over integers modulo a prime. Float's sums are doubles.
template <class T>
struct math {
  using accumulator = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr bool ordered = true;
  static constexpr T exp(T x) { return vector_math::exp(x); }
  static constexpr T log(T x) { return vector_math::log(x); }
  static constexpr T tanh(T x) { return vector_math::tanh(x); }
  static constexpr T erf(T x) { return vector_math::erf(x); }
  static T sqrt(T x) { return elementary::sqrt(x); }
  static constexpr T mul_add(T x, T y, T z) { return x * y + z; }  // not fused
  static double power(double x, double n) { return elementary::pow(x, n); }
  static T inverse_root(double x) { return static_cast<T>(1 / elementary::sqrt(x)); }
  static constexpr T from(double x) { return static_cast<T>(x); }
  static constexpr double number(T x) { return static_cast<double>(x); }
  static constexpr T from_count(std::int64_t n) { return static_cast<T>(n); }
  static constexpr T max(T a, T b) { return a > b ? a : b; }
  static constexpr bool positive(T x) { return x > T(0); }
  static T sin(T x) { return elementary::sin(x); }
  static T cos(T x) { return elementary::cos(x); }
  static T pow(T x, T n) { return power_of<math>(x, n); }
  static constexpr bool less(T a, T b) { return a < b; }
  static constexpr T lowest() { return -std::numeric_limits<T>::infinity(); }
  static constexpr T highest() { return std::numeric_limits<T>::infinity(); }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END

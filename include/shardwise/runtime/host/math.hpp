// SPDX-License-Identifier: Apache-2.0
// Scalar functions of the host kernels, per element type; float has a branch-free exp that compilers vectorise.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <shardwise/support/config.hpp>
#include <shardwise/support/elementary.hpp>

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

// A trait, so that the rule proofs can run the same kernels over integers modulo a prime.
template <class T>
struct math {
  using accumulator = T;
  static constexpr bool ordered = true;
  static T exp(T x) { return elementary::exp(x); }
  static T log(T x) { return elementary::log(x); }
  static T tanh(T x) { return elementary::tanh(x); }
  static T erf(T x) { return elementary::erf(x); }
  static T sqrt(T x) { return elementary::sqrt(x); }
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

// 2^n * p(r) with n = round(x / ln 2), the power of two in two factors: within 2 units in the last place over the whole range,
// finite up to 88.72, and below -87.3 as fine as the type is, down to its smallest number. Where nothing is left, 0 is
// multiplied: a product that vanishes costs some processors a hundred cycles.
inline float exp_float(float x) {
  const float bounded = x < -104.0F ? -104.0F : x > 89.0F ? 89.0F : x;
  const float scaled = bounded * 1.44269504F;
  const float shifted = scaled + 12582912.0F;  // 1.5 * 2^23: rounds to the nearest integer
  const float n = shifted - 12582912.0F;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::int32_t whole = std::bit_cast<std::int32_t>(shifted) - 0x4B400000, half = whole >> 1;
  const float left = std::bit_cast<float>((half + 127) << 23), right = std::bit_cast<float>((whole - half + 127) << 23);
  return (x < -104.0F ? 0.0F : p) * left * right;
}

// 1 - 2 / (e^2|x| + 1) from 0.625 on; below, where that cancels, an odd polynomial (Cephes): within 2 units.
inline float tanh_float(float x) {
  const float a = elementary::fabs(x), q = x * x;
  const float e = exp_float(2.0F * (a > 20.0F ? 20.0F : a));
  const float big = elementary::copysign(1.0F - 2.0F / (e + 1.0F), x);
  float p = -5.70498872745e-3F;
  p = p * q + 2.06390887954e-2F;
  p = p * q - 5.37397155531e-2F;
  p = p * q + 1.33314422036e-1F;
  p = p * q - 3.33332819422e-1F;
  const float small = p * q * x + x;
  return a < 0.625F ? small : big;
}

template <>
struct math<float> {
  using accumulator = double;
  static constexpr bool ordered = true;
  static float exp(float x) { return exp_float(x); }
  static float log(float x) { return elementary::log(x); }
  static float tanh(float x) { return tanh_float(x); }
  static float erf(float x) { return elementary::erf(x); }
  static float sqrt(float x) { return elementary::sqrt(x); }
  static double power(double x, double n) { return elementary::pow(x, n); }
  static float inverse_root(double x) { return static_cast<float>(1 / elementary::sqrt(x)); }
  static constexpr float from(double x) { return static_cast<float>(x); }
  static constexpr double number(float x) { return static_cast<double>(x); }
  static constexpr float from_count(std::int64_t n) { return static_cast<float>(n); }
  static constexpr float max(float a, float b) { return a > b ? a : b; }
  static constexpr bool positive(float x) { return x > 0.0F; }
  static float sin(float x) { return elementary::sin(x); }
  static float cos(float x) { return elementary::cos(x); }
  static float pow(float x, float n) { return power_of<math>(x, n); }
  static constexpr bool less(float a, float b) { return a < b; }
  static constexpr float lowest() { return -std::numeric_limits<float>::infinity(); }
  static constexpr float highest() { return std::numeric_limits<float>::infinity(); }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

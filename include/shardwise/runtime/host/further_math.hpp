// SPDX-License-Identifier: Apache-2.0
// floor, ceil, round, expm1 and log1p of float and double under vector_math.hpp's law: no branches, calls or tables, equal bits
// wherever an element stands, within two units in the last place. For those who call such functions alone: no other program reads it.
#pragma once

#include <shardwise/runtime/host/vector_math.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

#define SHARDWISE_INLINED [[gnu::always_inline]]

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {
namespace vector_math {

// The nearest whole number, of two the even one; a zero has x's sign.
template <class T>
SHARDWISE_INLINED constexpr T round(T x) {
  using with = numbers<T>;
  constexpr T carrier = T(typename with::word(1) << with::mantissa);  // from here on all numbers are whole
  const T a = magnitude(x);
  return a < carrier ? with_sign_of((a + carrier) - carrier, x) : x;
}
template <class T>
SHARDWISE_INLINED constexpr T floor(T x) {
  const T r = round(x);
  return r > x ? r - T(1) : r;
}
// r + 1 would make a positive zero of what lies between -1 and 0.
template <class T>
SHARDWISE_INLINED constexpr T ceil(T x) {
  const T r = round(x);
  return r < x ? with_sign_of(magnitude(r + T(1)), x) : r;
}

// With x = n ln 2 + r: 2^n ((e^r - 1 - r) + (r + (1 - 2^-n))), the power of two in two factors as exp's. Law: for n 0 and 1 the last
// sum is exact, so that what cancels there has no error.
template <class T>
SHARDWISE_INLINED constexpr T expm1(T x) {
  using with = numbers<T>;
  using word = typename with::word;
  const T low = T(-60), high = with::exp_highest;  // below, -1
  const T bounded = x < low ? low : x > high ? high : x;
  const T n = (bounded * with::log2_e + with::whole) - with::whole;
  const T r = (bounded - n * with::ln2_high) - n * with::ln2_low;
  const T few = n > T(100) ? T(100) : n;  // the most that 2^-n is asked for
  const T back = power_of_two<T>(std::bit_cast<word>((with::whole + T(with::bias)) - few));
  const word half = std::bit_cast<word>(n * T(0.5) + (with::whole + T(with::bias)));
  const word rest = std::bit_cast<word>(n + (with::whole + T(2 * with::bias))) - half;
  const T y = (with::exp_rest(r) * r * r + (r + (T(1) - back))) * power_of_two<T>(half) * power_of_two<T>(rest);
  return x == T(0) ? x : y;
}

// log(u) + (x - (u - 1)) / u with u = 1 + x rounded: the second summand is what rounding took.
template <class T>
SHARDWISE_INLINED constexpr T log1p(T x) {
  const T u = T(1) + x;
  const bool within = u > T(0) && u < std::numeric_limits<T>::infinity();
  const T rest = within ? (x - (u - T(1))) / u : T(0);
  return x == T(0) ? x : log(u) + rest;
}

}  // namespace vector_math
}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

#undef SHARDWISE_INLINED

SHARDWISE_UNFUSED_END

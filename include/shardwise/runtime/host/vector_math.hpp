// SPDX-License-Identifier: Apache-2.0
// exp, log, tanh and erf of float and double without branches, calls or tables, so that loops over them become vectors.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

// Without it clang calls the longer ones, and a loop with a call is no vector's.
#define SHARDWISE_INLINED [[gnu::always_inline]]

// The law. A result depends on its argument alone: not on the instruction set, nor on where an element stands in a vector or
// on how many there are, nor on whether it is computed in a constant. Hence no step may be fused with the next one: whoever
// calls from a loop takes those of isa.hpp. All are within two units in the last place wherever the result is a number, down
// to the smallest ones; of a NaN, NaN.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {
namespace vector_math {

// How numbers are written, and the polynomials (of least largest error, Remez).
template <class T>
struct numbers;

template <>
struct numbers<float> {
  using word = std::uint32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float whole = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to the nearest integer
  static constexpr float log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  static constexpr float exp_lowest = -104.0F, exp_highest = 89.0F;  // beyond: 0 and infinity
  static constexpr float tanh_highest = 10.0F, erf_highest = 4.0F;   // beyond: 1
  static constexpr word root_half = 0x3F3504F3;                      // bits of sqrt(1/2)

  // (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2
  SHARDWISE_INLINED static constexpr float exp_rest(float r) {
    float p = 1.39507011e-3F;
    p = p * r + 8.36895406e-3F;
    p = p * r + 4.16662022e-2F;
    p = p * r + 1.66665182e-1F;
    return p * r + 0.5F;
  }
  // (log((1 + s) / (1 - s)) - 2 s) / s for |s| <= 0.172, z = s^2
  SHARDWISE_INLINED static constexpr float log_rest(float z) {
    float p = 0.24279078841F;
    p = p * z + 0.28498786688F;
    p = p * z + 0.40000972152F;
    p = p * z + 0.66666662693F;
    return p * z;
  }
  // (tanh(x) / x - 1) / z for |x| < 0.625, z = x^2, as a quotient
  SHARDWISE_INLINED static constexpr float tanh_over(float z) {
    float p = -5.70498872745e-3F;
    p = p * z + 2.06390887954e-2F;
    p = p * z - 5.37397155531e-2F;
    p = p * z + 1.33314422036e-1F;
    return p * z - 3.33332819422e-1F;
  }
  SHARDWISE_INLINED static constexpr float tanh_under(float) { return 1.0F; }
  // erf(x) / x - 1 for |x| < 1, z = x^2
  SHARDWISE_INLINED static constexpr float erf_rest(float z) {
    float p = 7.8891193e-05F;
    p = p * z - 8.02084571e-4F;
    p = p * z + 5.18953661e-3F;
    p = p * z - 2.68544462e-2F;
    p = p * z + 1.12836003e-1F;
    p = p * z - 3.7612626e-1F;
    return p * z + 1.28379166e-1F;
  }
  // log(1 - erf(a)) for a in [1, 4]
  SHARDWISE_INLINED static constexpr float log_erfc(float a) {
    float p = 1.85573605e-4F;
    p = p * a - 2.93960446e-3F;
    p = p * a + 2.18053106e-2F;
    p = p * a - 1.03037357e-1F;
    p = p * a - 6.38225675e-1F;
    p = p * a - 1.12704003F;
    return p * a - 3.53717682e-4F;
  }
};

template <>
struct numbers<double> {
  using word = std::uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double whole = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double log2_e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01,
                          ln2_low = 1.90821492927058770002e-10;
  static constexpr double exp_lowest = -746.0, exp_highest = 710.0;
  static constexpr double tanh_highest = 22.0, erf_highest = 6.0;
  static constexpr word root_half = 0x3FE6A09E667F3BCD;

  SHARDWISE_INLINED static constexpr double exp_rest(double r) {
    double p = 2.5118062940691127e-08;
    p = p * r + 2.763141030208822e-07;
    p = p * r + 2.755721559750979e-06;
    p = p * r + 2.4801489605911717e-05;
    p = p * r + 0.00019841269918266578;
    p = p * r + 0.001388888894730927;
    p = p * r + 0.008333333333306743;
    p = p * r + 0.04166666666651444;
    p = p * r + 0.166666666666667;
    return p * r + 0.5000000000000013;
  }
  SHARDWISE_INLINED static constexpr double log_rest(double z) {
    double p = 1.479819860511658591e-01;
    p = p * z + 1.531383769920937332e-01;
    p = p * z + 1.818357216161805012e-01;
    p = p * z + 2.222219843214978396e-01;
    p = p * z + 2.857142874366239149e-01;
    p = p * z + 3.999999999940941908e-01;
    p = p * z + 6.666666666666735130e-01;
    return p * z;
  }
  SHARDWISE_INLINED static constexpr double tanh_over(double z) {
    return (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
  }
  SHARDWISE_INLINED static constexpr double tanh_under(double z) {
    return ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3;
  }
  SHARDWISE_INLINED static constexpr double erf_rest(double z) {
    double p = -7.801188874097751e-10;
    p = p * z + 1.3722976265924504e-08;
    p = p * z - 1.6209175911748696e-07;
    p = p * z + 1.6447517677871873e-06;
    p = p * z - 1.4924744663335489e-05;
    p = p * z + 0.00012055295320494294;
    p = p * z - 0.0008548325989696758;
    p = p * z + 0.005223977607423468;
    p = p * z - 0.02686617064327622;
    p = p * z + 0.11283791670945253;
    p = p * z - 0.3761263890318355;
    return p * z + 0.12837916709551256;
  }
  SHARDWISE_INLINED static constexpr double log_erfc(double a) {
    double p = 1.0390269467187596e-12;
    p = p * a - 4.7516309464716844e-11;
    p = p * a + 1.0170356334479061e-09;
    p = p * a - 1.3522120803479397e-08;
    p = p * a + 1.2483016573788987e-07;
    p = p * a - 8.451896156487914e-07;
    p = p * a + 4.301766893082576e-06;
    p = p * a - 1.6421434144371468e-05;
    p = p * a + 4.4769756972938614e-05;
    p = p * a - 6.97499901245147e-05;
    p = p * a - 4.5956942756095614e-05;
    p = p * a + 0.0006428353563673363;
    p = p * a - 0.0017709274851046574;
    p = p * a + 0.00028223053645690756;
    p = p * a + 0.01907695411442194;
    p = p * a - 0.10274664205143527;
    p = p * a - 0.6366287038951542;
    p = p * a - 1.1283772823667788;
    return p * a - 1.8438785014972396e-07;
  }
};

// x = n ln 2 + r with n the nearest integer, which comes with `Offset` added in the low bits of `carrier`; p = e^r.
template <class T>
struct reduced_exp {
  T carrier, n, p;
};
template <int Offset, class T>
SHARDWISE_INLINED constexpr reduced_exp<T> reduce_exp(T x) {
  using with = numbers<T>;
  const T carrier = x * with::log2_e + (with::whole + T(Offset)), n = carrier - (with::whole + T(Offset));
  const T r = (x - n * with::ln2_high) - n * with::ln2_low;
  return {carrier, n, with::exp_rest(r) * r * r + r + T(1)};
}
// The power of two whose biased exponent the low bits of w hold.
template <class T>
SHARDWISE_INLINED constexpr T power_of_two(typename numbers<T>::word w) {
  return std::bit_cast<T>(static_cast<typename numbers<T>::word>(w << numbers<T>::mantissa));
}

// e^x, the power of two in two factors: as fine as the type is down to its smallest number. Where nothing is left, 0 is
// multiplied: a product that vanishes costs some processors a hundred cycles.
template <class T>
SHARDWISE_INLINED constexpr T exp(T x) {
  using with = numbers<T>;
  using word = typename with::word;
  const T bounded = x < with::exp_lowest ? with::exp_lowest : x > with::exp_highest ? with::exp_highest : x;
  const auto [carrier, n, p] = reduce_exp<2 * with::bias>(bounded);
  const word half = std::bit_cast<word>(n * T(0.5) + (with::whole + T(with::bias)));
  const word rest = std::bit_cast<word>(carrier) - half;
  return (x < with::exp_lowest ? T(0) : p) * power_of_two<T>(half) * power_of_two<T>(rest);
}

// The same where neither x nor the result is near the ends of the range.
template <class T>
SHARDWISE_INLINED constexpr T exp_within(T x) {
  const auto [carrier, n, p] = reduce_exp<numbers<T>::bias>(x);
  return p * power_of_two<T>(std::bit_cast<typename numbers<T>::word>(carrier));
}

// With x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), and s = f / (2 + f): e ln 2 + log((1 + s) / (1 - s)).
template <class T>
SHARDWISE_INLINED constexpr T log(T x) {
  using with = numbers<T>;
  using word = typename with::word;
  using limits = std::numeric_limits<T>;
  constexpr word one = word(with::bias) << with::mantissa, fraction = (word(1) << with::mantissa) - 1;
  constexpr T carrier = T(word(1) << with::mantissa);
  const bool tiny = x < limits::min();
  const word w = std::bit_cast<word>(tiny ? x * carrier : x) + (one - with::root_half);
  const T e = std::bit_cast<T>((w >> with::mantissa) | std::bit_cast<word>(carrier)) - (carrier + T(with::bias)) -
              (tiny ? T(with::mantissa) : T(0));
  const T f = std::bit_cast<T>((w & fraction) + with::root_half) - T(1);
  const T s = f / (T(2) + f), square = T(0.5) * f * f;
  const T y = s * (square + with::log_rest(s * s)) + e * with::ln2_low - square + f + e * with::ln2_high;
  const T outside = x == T(0) ? -limits::infinity() : x < T(0) ? limits::quiet_NaN() : x;
  return x > T(0) && x < limits::infinity() ? y : outside;
}

template <class T>
SHARDWISE_INLINED constexpr T magnitude(T x) {
  using word = typename numbers<T>::word;
  return std::bit_cast<T>(std::bit_cast<word>(x) & static_cast<word>(~word(0) >> 1));
}
// y >= 0 with x's sign.
template <class T>
SHARDWISE_INLINED constexpr T with_sign_of(T y, T x) {
  using word = typename numbers<T>::word;
  return std::bit_cast<T>(std::bit_cast<word>(y) | (std::bit_cast<word>(x) & ~(~word(0) >> 1)));
}

// 1 - 2 / (e^2|x| + 1) from 0.625 on; below, where that cancels, x + x^3 over / under. One quotient for both.
template <class T>
SHARDWISE_INLINED constexpr T tanh(T x) {
  using with = numbers<T>;
  const T a = magnitude(x), z = x * x;
  const T e = exp_within(T(2) * (a > with::tanh_highest ? with::tanh_highest : a));
  const bool small = a < T(0.625);
  const T over = small ? a * z * with::tanh_over(z) : T(-2), under = small ? with::tanh_under(z) : e + T(1);
  return with_sign_of((small ? a : T(1)) + over / under, x);
}

// 1 - e^log_erfc(|x|) from 1 on; below, x + x erf_rest(x^2).
template <class T>
SHARDWISE_INLINED constexpr T erf(T x) {
  using with = numbers<T>;
  const T a = magnitude(x);
  const T big = T(1) - exp_within(with::log_erfc(a > with::erf_highest ? with::erf_highest : a));
  return with_sign_of(a < T(1) ? a + a * with::erf_rest(a * a) : big, x);
}

}  // namespace vector_math
}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

#undef SHARDWISE_INLINED

SHARDWISE_UNFUSED_END

// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16: every pattern of bits there and back; between neighbours the nearer one, half way the even one.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <shardwise/vocabulary/dtype.hpp>

namespace {

namespace sw = shardwise;

// The number that bits mean, from the definition: (-1)^s 2^(e - bias) (1 + m / 2^digits), below that multiples of the smallest.
template <int Exponent, int Digits>
double meant(std::uint16_t bits) {
  const int e = bits >> Digits & ((1 << Exponent) - 1), m = bits & ((1 << Digits) - 1), bias = (1 << (Exponent - 1)) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  if (e == (1 << Exponent) - 1)
    return m ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (e == 0) return sign * std::ldexp(m, 1 - bias - Digits);
  return sign * std::ldexp((1 << Digits) + m, e - bias - Digits);
}

template <class T, int Exponent, int Digits>
void check_all() {
  int wrong = 0, wrong_way_back = 0, wrong_between = 0;
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double want = meant<Exponent, Digits>(bits);
    const float got = T::of_bits(bits);
    if (std::isnan(want)) {
      wrong += std::isnan(got) ? 0 : 1;
      wrong_way_back += std::isnan(static_cast<float>(T(got))) ? 0 : 1;
      continue;
    }
    wrong += static_cast<double>(got) == want && std::signbit(got) == std::signbit(want) ? 0 : 1;
    wrong_way_back += T(got).bits == bits ? 0 : 1;
    const auto next = static_cast<std::uint16_t>(i + 1);  // away from zero
    if (std::isinf(want)) continue;
    // what would follow the largest is infinite, from half a step on
    const double step = std::isinf(meant<Exponent, Digits>(next))
                            ? std::fabs(want) - std::fabs(meant<Exponent, Digits>(static_cast<std::uint16_t>(i - 1)))
                            : std::fabs(meant<Exponent, Digits>(next)) - std::fabs(want);
    const auto middle = static_cast<float>(want < 0 || std::signbit(want) ? want - step / 2 : want + step / 2);
    const float towards = std::nextafter(middle, 0.0F);
    const float away = std::nextafter(middle, std::copysign(std::numeric_limits<float>::infinity(), middle));
    wrong_between += T(middle).bits == (bits & 1U ? next : bits) ? 0 : 1;
    wrong_between += T(towards).bits == bits ? 0 : 1;
    wrong_between += T(away).bits == next ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(wrong_way_back == 0);
  CHECK(wrong_between == 0);
  CHECK(std::isinf(static_cast<float>(T(std::numeric_limits<float>::infinity()))));
  CHECK(std::isinf(static_cast<float>(T(std::numeric_limits<float>::max()))));
  CHECK(T(-0.0F).bits == 0x8000);
  CHECK(std::isnan(static_cast<float>(T(std::bit_cast<float>(0x7F800001U)))));  // whose upper bits are an infinity's
}

}  // namespace

TEST_CASE("float16: every number, there and back and between") { check_all<sw::float16, 5, 10>(); }
TEST_CASE("bfloat16: every number, there and back and between") { check_all<sw::bfloat16, 8, 7>(); }

TEST_CASE("float16 and bfloat16: sums are floats' sums, rounded; constants") {
  static_assert(float(sw::bf16(1.0F) + sw::bf16(1.0F / 256)) == 1.0F &&
                float(sw::bf16(1.0F) + sw::bf16(3.0F / 256)) == 1.015625F);
  static_assert(float(sw::f16(2048.0F) + sw::f16(1.0F)) == 2048.0F && float(sw::f16(3.0F) / sw::f16(4.0F)) == 0.75F);
  static_assert(sw::f16(1.0F) < sw::f16(1.5F) && -sw::bf16(2.0F) == sw::bf16(-2.0F));
  static_assert(sw::size_of(sw::dtype::bf16) == 2 && sw::size_of(sw::dtype::i64) == 8 &&
                sw::size_of(sw::dtype::boolean) == 1);
  static_assert(sw::wide_of(sw::dtype::f16) == sw::dtype::f32 && sw::wide_of(sw::dtype::f64) == sw::dtype::f64);
  CHECK(sw::dtype_v<sw::bf16> == sw::dtype::bf16);
}

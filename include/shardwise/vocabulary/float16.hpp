// SPDX-License-Identifier: Apache-2.0
// float16 (IEEE 754 binary16) and bfloat16 (the upper half of a float) as element types: stored in two bytes, computed with in
// float. What becomes one of them is rounded to nearest, ties to even; what is too large becomes an infinity, a NaN stays one.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

constexpr std::uint16_t to_bfloat16_bits(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (!std::is_constant_evaluated()) {
    std::uint16_t r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
  }
#endif
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (u + 0x7FFFU + (u >> 16 & 1U)) >> 16;
  const bool is_nan = (u & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<std::uint16_t>(is_nan ? (u >> 16 | 0x40U) : rounded);
}
constexpr float from_bfloat16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Numbers below 2^-14 are multiples of 2^-24: adding 1/2 to a float rounds to these.
constexpr std::uint16_t to_float16_bits(float x) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint16_t r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
  }
#endif
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x), sign = u >> 16 & 0x8000U, size = u & 0x7FFFFFFFU;
  std::uint32_t r = 0;
  if (size > 0x7F800000U) r = 0x7E00U | (size >> 13 & 0x1FFU);
  else if (size >= 0x47800000U) r = 0x7C00U;  // 65536; what rounds to it becomes infinite below
  else if (size < 0x38800000U) r = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3F000000U;
  else r = (size - 0x38000000U + 0xFFFU + (size >> 13 & 1U)) >> 13;
  return static_cast<std::uint16_t>(sign | r);
}
constexpr float from_float16_bits(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
    return r;
  }
#endif
  const std::uint32_t sign = (bits & 0x8000U) << 16, size = bits & 0x7FFFU;
  std::uint32_t r = 0;
  if (size >= 0x7C00U) r = 0x7F800000U | (size & 0x3FFU) << 13;
  else if (size < 0x400U) r = std::bit_cast<std::uint32_t>(static_cast<float>(size) * 5.9604644775390625e-8F);  // 2^-24
  else r = (size << 13) + 0x38000000U;
  return std::bit_cast<float>(sign | r);
}

}  // namespace detail

// Made from any number by a conversion that is written; read as a float. Sums, products and quotients are those of floats, each
// rounded, as of std::bfloat16_t and std::float16_t.
#define SHARDWISE_FLOAT_OF_TWO_BYTES(name)                                                           \
  struct name {                                                                                      \
    std::uint16_t bits = 0;                                                                          \
    constexpr name() = default;                                                                      \
    template <class X>                                                                               \
      requires std::is_arithmetic_v<X>                                                               \
    constexpr explicit name(X x) : bits(detail::to_##name##_bits(static_cast<float>(x))) {}          \
    constexpr operator float() const { return detail::from_##name##_bits(bits); }                    \
    static constexpr name of_bits(std::uint16_t b) {                                                 \
      name r;                                                                                        \
      r.bits = b;                                                                                    \
      return r;                                                                                      \
    }                                                                                                \
    constexpr name operator-() const { return of_bits(static_cast<std::uint16_t>(bits ^ 0x8000U)); } \
    friend constexpr name operator+(name a, name b) { return name(float(a) + float(b)); }            \
    friend constexpr name operator-(name a, name b) { return name(float(a) - float(b)); }            \
    friend constexpr name operator*(name a, name b) { return name(float(a) * float(b)); }            \
    friend constexpr name operator/(name a, name b) { return name(float(a) / float(b)); }            \
    friend constexpr bool operator==(name a, name b) { return float(a) == float(b); }                \
    friend constexpr bool operator<(name a, name b) { return float(a) < float(b); }                  \
    friend constexpr bool operator>(name a, name b) { return float(a) > float(b); }                  \
  };
SHARDWISE_FLOAT_OF_TWO_BYTES(bfloat16)
SHARDWISE_FLOAT_OF_TWO_BYTES(float16)
#undef SHARDWISE_FLOAT_OF_TWO_BYTES

using bf16 = bfloat16;
using f16 = float16;

}  // namespace shardwise::inline v0_1

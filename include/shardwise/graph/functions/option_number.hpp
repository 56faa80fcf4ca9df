// SPDX-License-Identifier: Apache-2.0
// option_number: a real number among the options that a function takes as a template argument.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace shardwise::inline v0_1 {

// Its bits, since clang 16 takes no real number as a template argument. From 8 bytes of integer: the bits themselves, which is how
// nvcc writes it into host code.
struct option_number {
  std::int64_t bits;
  constexpr option_number(double value) : bits(std::bit_cast<std::int64_t>(value)) {}
  template <std::integral I>
  constexpr option_number(I n)
      : bits(sizeof(I) == 8 ? static_cast<std::int64_t>(n) : std::bit_cast<std::int64_t>(static_cast<double>(n))) {}
  constexpr double value() const { return std::bit_cast<double>(bits); }
};

}  // namespace shardwise::inline v0_1

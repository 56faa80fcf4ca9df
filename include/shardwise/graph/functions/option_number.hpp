// SPDX-License-Identifier: Apache-2.0
// option_number: a real number among the options that a function takes as a template argument.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace shardwise::inline v0_1 {

// Its bits, since clang 16 takes no real number as a template argument. An integer is that number; but nvcc writes the bits as an integer
// into host code, so there an integer of 2^52 or more, or of -2^52 or less, is bits: those of all real numbers but 0, since what is nearer
// to 0 than 2^-1022 is 0 here, and of NaN there is one. For nvcc write such large integers as real numbers, 1e16.
struct option_number {
  std::int64_t bits;
  constexpr option_number(double value) : bits(std::bit_cast<std::int64_t>(value)) {
    const std::int64_t size = bits & 0x7fffffffffffffff;
    if (size < std::int64_t{1} << 52) bits -= size;
    if (size > 0x7ff0000000000000) bits = 0x7ff8000000000000;
  }
  template <std::integral I>
  constexpr option_number(I n)
      : bits(are_bits(n) ? static_cast<std::int64_t>(n) : std::bit_cast<std::int64_t>(static_cast<double>(n))) {}
  constexpr double value() const { return std::bit_cast<double>(bits); }

 private:
  template <class I>
  static constexpr bool are_bits([[maybe_unused]] I n) {
#ifdef __CUDACC__
    if constexpr (sizeof(I) == 8) {
      constexpr std::int64_t most = std::int64_t{1} << 52;
      const auto given = static_cast<std::int64_t>(n);
      return given >= most || given <= -most;
    }
#endif
    return false;
  }
};

}  // namespace shardwise::inline v0_1

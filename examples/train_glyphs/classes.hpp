// SPDX-License-Identifier: Apache-2.0
// What is told apart: 55 classes of the 62 letters and digits.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace train_glyphs {

/// A class is a digit or a letter in one case, but for the seven letters whose two cases are one shape at two sizes: images come in many
/// sizes and show no line to stand on, so nothing in them says which case it is. What is merely alike stays apart and counts as a
/// mistake where it is taken for the other: I and l and 1, O and 0, K and k, P and p, U and u.
inline constexpr std::array<std::string_view, 55> classes{
    "0",  "1", "2",  "3", "4", "5", "6", "7", "8", "9",  //
    "A",  "B", "Cc", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "Oo", "P", "Q", "R", "Ss", "T", "U", "Vv", "Ww",
    "Xx", "Y", "Zz", "a", "b", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",  "n", "p", "q", "r",  "t", "u", "y"};

constexpr std::size_t characters() {
  std::size_t n = 0;
  for (const std::string_view c : classes) n += c.size();
  return n;
}
static_assert(characters() == 62);

}  // namespace train_glyphs

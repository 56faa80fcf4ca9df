// SPDX-License-Identifier: Apache-2.0
// fixed_string: a string literal as a template argument, exact in size so that compilers print it whole.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardwise::inline v0_1 {

template <std::size_t N>
struct fixed_string {
  char text[N]{};

  constexpr fixed_string() = default;
  constexpr fixed_string(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }

  constexpr std::string_view view() const { return {text, N - 1}; }
  constexpr bool operator==(const fixed_string&) const = default;
};

template <std::size_t N>
fixed_string(const char (&)[N]) -> fixed_string<N>;

// Cut to the exact length found at compile time; compilers print zero-padded strings as numbers.
template <std::size_t N>
constexpr fixed_string<N + 1> exact_string(std::string_view s) {
  fixed_string<N + 1> r;
  for (std::size_t i = 0; i != N; ++i) r.text[i] = s[i];
  r.text[N] = '\0';  // clang prints as numbers what ends in an element that nobody has written
  return r;
}

}  // namespace shardwise::inline v0_1

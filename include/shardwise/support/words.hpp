// SPDX-License-Identifier: Apache-2.0
// Words and numbers written to anything with push_back(char), in constants and at run time alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwise::inline v0_1 {

// Counts past its capacity without storing.
template <int Capacity>
struct text_buffer {
  char text[Capacity + 1]{};
  int count = 0;

  constexpr void push_back(char c) {
    if (count < Capacity) text[count] = c;
    ++count;
  }
  constexpr int size() const { return count; }
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(count < Capacity ? count : Capacity)}; }
};

namespace text {

template <class Sink>
constexpr void put(Sink& out, const char* s) {
  while (*s != '\0') out.push_back(*s++);
}

template <class Sink>
constexpr void put(Sink& out, std::string_view s) {
  for (const char c : s) out.push_back(c);
}

template <class Sink>
constexpr void put(Sink& out, std::int64_t v) {
  std::uint64_t rest = static_cast<std::uint64_t>(v);
  if (v < 0) {
    out.push_back('-');
    rest = 0 - rest;  // the least number has no positive twin of its type
  }
  char digits[20]{};
  int n = 0;
  do digits[n++] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) != 0);
  while (n > 0) out.push_back(digits[--n]);
}

}  // namespace text

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// checksum: XXH64 of bytes (seed 0), which other tools compute, too. Price: two multiplications for each eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace shardwise::inline v0_1::storage {

namespace detail {

inline constexpr std::uint64_t xx1 = 0x9E3779B185EBCA87ULL, xx2 = 0xC2B2AE3D27D4EB4FULL, xx3 = 0x165667B19E3779F9ULL,
                               xx4 = 0x85EBCA77C2B2AE63ULL, xx5 = 0x27D4EB2F165667C5ULL;

constexpr std::uint64_t turned(std::uint64_t x, int by) { return x << by | x >> (64 - by); }
constexpr std::uint64_t round_of(std::uint64_t sum, std::uint64_t word) { return turned(sum + word * xx2, 31) * xx1; }
template <class Word>
std::uint64_t word_at(const unsigned char* p) {  // little-endian, as the machine is (safetensors/format.hpp)
  Word w;
  std::memcpy(&w, p, sizeof w);
  return w;
}

}  // namespace detail

inline std::uint64_t checksum(const void* bytes, std::size_t count) {
  using namespace detail;
  const auto* p = static_cast<const unsigned char*>(bytes);
  const auto* const end = p + count;
  std::uint64_t h = xx5;
  if (count >= 32) {
    std::uint64_t v = xx1 + xx2, w = xx2, x = 0, y = 0 - xx1;  // four sums beside each other, in registers
    for (; end - p >= 32; p += 32) {
      v = round_of(v, word_at<std::uint64_t>(p));
      w = round_of(w, word_at<std::uint64_t>(p + 8));
      x = round_of(x, word_at<std::uint64_t>(p + 16));
      y = round_of(y, word_at<std::uint64_t>(p + 24));
    }
    h = turned(v, 1) + turned(w, 7) + turned(x, 12) + turned(y, 18);
    for (const std::uint64_t lane : {v, w, x, y}) h = (h ^ round_of(0, lane)) * xx1 + xx4;
  }
  h += count;
  for (; end - p >= 8; p += 8) h = turned(h ^ round_of(0, word_at<std::uint64_t>(p)), 27) * xx1 + xx4;
  for (; end - p >= 4; p += 4) h = turned(h ^ word_at<std::uint32_t>(p) * xx1, 23) * xx2 + xx3;
  for (; p != end; ++p) h = turned(h ^ *p * xx5, 11) * xx1;
  h = (h ^ h >> 33) * xx2;
  h = (h ^ h >> 29) * xx3;
  return h ^ h >> 32;
}
inline std::uint64_t checksum(std::string_view text) { return checksum(text.data(), text.size()); }

// Sixteen hexadecimal digits.
inline std::string checksum_text(std::uint64_t sum) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; sum >>= 4) text[i] = "0123456789abcdef"[sum & 15];
  return text;
}

}  // namespace shardwise::inline v0_1::storage

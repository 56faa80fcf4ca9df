// SPDX-License-Identifier: Apache-2.0
// The hash loses no word, and tables that are looked up by its lowest bits see every bit of one.
#include <shardwise/support/hash.hpp>

namespace {

namespace sw = shardwise;

constexpr std::uint64_t starts[] = {0, 1, sw::hash_seed, ~std::uint64_t{0}};

// Its inverse: the multiplier's, modulo 2^64, found by Newton's iteration.
constexpr std::uint64_t unmixed(std::uint64_t h, std::uint64_t v) {
  constexpr std::uint64_t m = 0xff51afd7ed558ccdULL;
  std::uint64_t inverse = m;
  for (int i = 0; i < 6; ++i) inverse *= 2 - m * inverse;
  h ^= (h >> 29) ^ (h >> 58);
  return (h * inverse) ^ v;
}
static_assert([] {
  for (const std::uint64_t h : starts)
    for (int bit = 0; bit < 64; ++bit)
      if (unmixed(sw::hash_mixed(h, std::uint64_t{1} << bit), std::uint64_t{1} << bit) != h) return false;
  return true;
}());
// Six bits of two numbers are equal by chance once in 64: of the four starts no more than one.
static_assert([] {
  const auto lowest = [](std::uint64_t x) { return sw::hash_mixed(sw::hash_mixed(x, 3), 5) & 63U; };
  for (int bit = 0; bit < 64; ++bit) {
    int unseen = 0;
    for (const std::uint64_t h : starts)
      unseen += lowest(sw::hash_mixed(h, 7)) == lowest(sw::hash_mixed(h, 7 ^ (std::uint64_t{1} << bit))) ? 1 : 0;
    if (unseen > 1) return false;
  }
  return true;
}());

}  // namespace

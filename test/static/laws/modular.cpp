// SPDX-License-Identifier: Apache-2.0
// Arithmetic of proofs: quotients are exact, and what stands for arbitrary numbers has no algebra.
#include <shardwise/laws/modular.hpp>

namespace {

namespace sw = shardwise;
namespace laws = sw::laws;
using laws::modp;

// a * inverse(a) == 1 for every a that is not 0, and it is the only such number below the modulus; of 0 it is 0.
constexpr bool inverts(std::uint64_t a) {
  const modp x = laws::reduced_to(a), i = laws::inverse(x);
  return laws::number(i) < laws::modulus && laws::inverse(i) == x &&
         (a % laws::modulus == 0 ? i == modp(0) : x * i == modp(1));
}
constexpr bool inverts_many() {
  for (std::uint64_t a = 0; a < 40; ++a)
    if (!inverts(a) || !inverts(laws::modulus - 1 - a) || !inverts(a * a * 7919 + (std::uint64_t{1} << 30))) return false;
  return true;
}
static_assert(inverts_many() && laws::inverse(modp(1)) == modp(1) &&
              laws::inverse(modp(laws::modulus - 1)) == modp(laws::modulus - 1));
static_assert(modp(10) / modp(5) == modp(2) && modp(7) / modp(0) == modp(0));

// One number and salt give one number below the modulus; near ones give others, so does another salt, and no sum or product is kept.
constexpr bool scrambles() {
  for (std::uint64_t x = 0; x < 60; ++x) {
    const std::uint32_t h = laws::scramble(x, 3);
    if (h >= laws::modulus || h != laws::scramble(x, 3) || h == laws::scramble(x, 4)) return false;
    for (std::uint64_t y = 0; y < x; ++y) {
      const modp a = laws::reduced_to(h), b = laws::reduced_to(laws::scramble(y, 3));
      if (a == b || a + b == laws::reduced_to(laws::scramble(x + y, 3)) ||
          a * b == laws::reduced_to(laws::scramble(x * y, 3)))
        return false;
    }
  }
  return true;
}
static_assert(scrambles());

}  // namespace

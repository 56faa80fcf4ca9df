// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 (Salmon et al., SC'11): random words as a function of key and counter, the same on every rank and mesh.
#pragma once

#include <cstdint>

namespace shardwise::inline v0_1 {

struct philox_words {
  std::uint32_t w[4];
};

constexpr philox_words philox(std::uint64_t key, std::uint32_t c0, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0, b = std::uint64_t{0xCD9E8D57U} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0,
                        n2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(b);
    c3 = static_cast<std::uint32_t>(a);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform in [0, 1): with 32 bits, or with 24, which float holds exactly.
constexpr double unit_32(const philox_words& r) { return r.w[0] * (1.0 / 4294967296.0); }
constexpr double unit_24(std::uint32_t word) { return (word >> 8) * (1.0 / 16777216.0); }

// Uniform in [0, 1) with 32 bits for element `index` of stream (`site`, `step`).
constexpr double philox_uniform(std::uint64_t seed, std::uint32_t site, std::uint32_t step, std::uint64_t index) {
  const philox_words r =
      philox(seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), site, step);
  return unit_32(r);
}

}  // namespace shardwise::inline v0_1

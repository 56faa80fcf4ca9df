// SPDX-License-Identifier: Apache-2.0
// The hash of specs, applications, collectives' order and blocks: words mixed in one after the other, in constants as at run time.
#pragma once

#include <cstdint>

namespace shardwise::inline v0_1 {

inline constexpr std::uint64_t hash_seed = 0x9e3779b97f4a7c15ULL;

// Law: a bijection of h for every v, and of v for every h. Every bit of a word bears on the lowest six, by which tables are
// looked up, once two more have been mixed in. Price: four operations, since specs are hashed at every interning.
constexpr std::uint64_t hash_mixed(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0xff51afd7ed558ccdULL;
  return h ^ (h >> 29);
}

}  // namespace shardwise::inline v0_1

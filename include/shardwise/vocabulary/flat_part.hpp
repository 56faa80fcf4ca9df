// SPDX-License-Identifier: Apache-2.0
// flat_part: where a parameter lies in the flat parameter of its group, and which part of it a rank holds.
#pragma once

#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// Parameters of a flat group lie row-major one after the other, in the order in which the model declares them, behind them zeros up
// to a multiple of the ranks; each rank stores an equal part of that. Positions and counts are in elements.
struct flat_part {
  std::int32_t leaf = -1;  // the number of the group's first parameter, by which its flat one goes; -1: in no flat group
  std::int64_t begin = 0;
  std::int64_t count = 0;
  spec used{};  // as the model reads it, whole
};

// What a rank holds of a parameter that begins at `begin`: `count` of its elements, row-major, from number `first` on, which lie
// from `at` on in the rank's block.
struct flat_run {
  std::int64_t first = 0, count = 0, at = 0;
};
// Law: the runs of the blocks of a flat parameter are disjoint, and their union is the parameter.
constexpr flat_run run_within(const flat_part& part, const interval& block) {
  const std::int64_t end = part.begin + part.count, block_end = block.begin + block.size;
  const std::int64_t lo = part.begin > block.begin ? part.begin : block.begin, hi = end < block_end ? end : block_end;
  if (hi <= lo) return {};
  return {lo - part.begin, hi - lo, lo - block.begin};
}

template <int Parameters>
struct flat_table {
  flat_part item[Parameters > 0 ? Parameters : 1]{};
};

}  // namespace shardwise::inline v0_1

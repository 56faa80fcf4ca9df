// SPDX-License-Identifier: Apache-2.0
// finding: what is wrong with a program, as a value; every problem has its sentence in diagnose.hpp.
#pragma once

#include <cstdint>

namespace shardwise::inline v0_1 {

enum class problem : std::uint16_t {
  none = 0,
#define SHARDWISE_X(name, text) name,
#include <shardwise/support/problems.def.hpp>
};

// `operand`, `dim` and `axis` say where; a negative value means "does not apply". `have` and `want` are the numbers
// that the sentence speaks of (extents, counts), 0 where it speaks of none.
struct finding {
  problem what = problem::none;
  int operand = -1;
  int dim = -1;
  int axis = -1;
  long long have = 0;
  long long want = 0;

  constexpr explicit operator bool() const { return what != problem::none; }
  constexpr bool operator==(const finding&) const = default;
};

}  // namespace shardwise::inline v0_1

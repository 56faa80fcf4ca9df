// SPDX-License-Identifier: Apache-2.0
// Whether two pointers to variables with static storage name one variable, in constants and at run time.
#pragma once

#include <type_traits>

namespace shardwise::inline v0_1 {

// In constants g++ under -fsanitize=undefined compares the address of an inline variable with itself alone, and calls any other
// comparison no constant: that one means two variables.
template <class T>
constexpr bool is_same_object(const T* a, const T* b) {
#if defined(__GNUC__) && !defined(__clang__)
  if (std::is_constant_evaluated() && !__builtin_constant_p(a == b)) return false;
#endif
  return a == b;
}

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// What a task's program says of itself: a check that does not hold ends it, on all ranks, with a sentence.
#pragma once

#include <stdexcept>
#include <string>

inline void check(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

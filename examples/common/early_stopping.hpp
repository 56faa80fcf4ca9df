// SPDX-License-Identifier: Apache-2.0
// Early stopping, as Keras and Lightning name it: a training ends when what is watched has not fallen for `patience` evaluations in a row.
#pragma once

#include <cstdint>
#include <limits>

namespace example {

struct early_stopping {
  std::int64_t patience = 0;  // 0: never
  double best = std::numeric_limits<double>::infinity();
  std::int64_t since_best = 0;  // evaluations that were no better, since the best one

  /// Whether the training ends with this evaluation.
  constexpr bool after(double watched) {
    since_best = watched < best ? 0 : since_best + 1;
    if (watched < best) best = watched;
    return patience > 0 && since_best >= patience;
  }
};

}  // namespace example

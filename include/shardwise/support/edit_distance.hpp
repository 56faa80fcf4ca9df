// SPDX-License-Identifier: Apache-2.0
// edit_distance: how far one name is from another.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardwise::inline v0_1::detail {

// Levenshtein distance, for "did you mean".
constexpr int edit_distance(std::string_view a, std::string_view b) {
  int row[65]{};
  if (b.size() > 64 || a.size() > 64) return 1000;
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int up = row[j];
      int best = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      if (up + 1 < best) best = up + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = up;
      row[j] = best;
    }
  }
  return row[b.size()];
}

}  // namespace shardwise::inline v0_1::detail

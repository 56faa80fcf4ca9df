// SPDX-License-Identifier: Apache-2.0
// nearest_rows: an estimate from a table of measured sizes, as the mean of those that are nearest, the nearer the more.
#pragma once

#include <cstdint>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::passes {

// Between powers of two a straight line; 0 of 0.
constexpr double log2_of(std::int64_t n) {
  if (n < 2) return 0;
  const int whole = 63 - __builtin_clzll(static_cast<unsigned long long>(n));
  return whole - 1 + static_cast<double>(n) / static_cast<double>(std::int64_t{1} << whole);
}

// The four nearest of the rows that `add` is given, by the squares of their distances; of equal ones those that came first.
struct nearest_rows {
  static constexpr int most = 4;
  int row[most] = {-1, -1, -1, -1};  // -1: fewer were given
  double distance[most]{};

  constexpr void add(int r, double d) {
    for (int k = 0; k < most; ++k) {
      if (row[k] >= 0 && distance[k] <= d) continue;
      const int later = row[k];
      const double further = distance[k];
      row[k] = r;
      distance[k] = d;
      if (later < 0) return;
      r = later;
      d = further;
    }
  }
  // The weighted mean of figure(row); 0 where no row was given.
  template <class Figure>
  constexpr double mean(const Figure& figure) const {
    double total = 0, sum = 0;
    for (int k = 0; k < most && row[k] >= 0; ++k) {
      const double share = 1 / (distance[k] + 0.05);
      total += share;
      sum += share * figure(row[k]);
    }
    return total > 0 ? sum / total : 0;
  }
};

}  // namespace shardwise::inline v0_1::passes

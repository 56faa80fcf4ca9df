// SPDX-License-Identifier: Apache-2.0
// Lists of doubles: some to begin with, how far two are apart, and the whole of a distributed tensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <shardwise/graph/functions/functions.hpp>
#include <vector>

namespace figures {

// n values between -1.5 and 1.5, others for another salt.
inline std::vector<double> some(std::size_t n, double salt) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 1.5 * std::sin(1.3 * static_cast<double>(i) + salt);
  return v;
}

// The largest difference; at least 1 of lists of different lengths, NaN where one holds a NaN.
inline double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    worst = d <= worst ? worst : d;
  }
  return worst;
}

// On every rank, all elements of an eager tensor in row-major order.
template <class X>
std::vector<double> whole(const X& x) {
  const auto all = shardwise::contiguous(x.full_tensor());
  const auto block = all.to_local();
  return std::vector<double>(block.data.begin(), block.data.end());
}

}  // namespace figures

// SPDX-License-Identifier: Apache-2.0
// view_strides against a search: the strides that it gives find every element, and where it gives none, there are none.
#include <shardwise/propagation/view.hpp>

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace {

namespace sw = shardwise;

// Where each element lies, in row-major order.
std::vector<std::int64_t> places(const std::vector<std::int64_t>& extent, const std::vector<std::int64_t>& stride) {
  std::vector<std::int64_t> r{0};
  for (std::size_t d = 0; d < extent.size(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : r)
      for (std::int64_t i = 0; i < extent[d]; ++i) next.push_back(at + i * stride[d]);
    r = next;
  }
  return r;
}

// The only strides that can be: the distance from the first element to the second one of each dim.
bool found(const std::vector<std::int64_t>& where, const std::vector<std::int64_t>& extent,
           std::vector<std::int64_t>& stride) {
  std::int64_t below = 1;
  stride.assign(extent.size(), 0);
  for (std::size_t d = extent.size(); d-- > 0;) {
    if (extent[d] > 1) stride[d] = where[static_cast<std::size_t>(below)] - where[0];
    below *= extent[d];
  }
  return places(extent, stride) == where;
}

TEST_CASE("view_strides: what it gives finds every element, and where it gives none there are none") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int seen = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    // extents as products of primes, stored in any order, with gaps, or one element for all of a dim
    std::vector<std::int64_t> extent, now, stride;
    const int rank = 1 + below(4);
    for (int d = 0; d < rank; ++d)
      extent.push_back(std::vector<std::int64_t>{1, 2, 3, 4, 6}[static_cast<std::size_t>(below(5))]);
    std::vector<int> order;
    for (int d = 0; d < rank; ++d) order.insert(order.begin() + below(d + 1), d);
    if (below(2) == 0)
      for (int d = 0; d < rank; ++d) order[static_cast<std::size_t>(d)] = rank - 1 - d;
    stride.assign(static_cast<std::size_t>(rank), 0);
    std::int64_t step = 1;
    for (const int d : order) {
      if (below(8) == 0) step *= 2;
      stride[static_cast<std::size_t>(d)] = below(10) == 0 ? 0 : step;
      step *= extent[static_cast<std::size_t>(d)];
    }
    std::int64_t left = 1;
    for (const std::int64_t e : extent) left *= e;
    while (left > 1 && now.size() < 6) {
      const std::int64_t e = std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, left}[static_cast<std::size_t>(below(7))];
      if (left % e != 0) continue;
      now.push_back(e);
      left /= e;
    }
    if (left > 1 || now.empty()) now.push_back(left);
    std::int64_t given[sw::max_rank]{};
    const bool possible =
        sw::rules::view_strides(extent.data(), stride.data(), rank, now.data(), static_cast<int>(now.size()), given);
    const auto where = places(extent, stride);
    std::vector<std::int64_t> want;
    const bool exists = found(where, now, want);
    if (possible) CHECK(places(now, {given, given + now.size()}) == where);
    CHECK(possible == exists);
    ++(possible ? seen : refused);
  }
  CHECK(seen > 500);
  CHECK(refused > 500);
}

}  // namespace

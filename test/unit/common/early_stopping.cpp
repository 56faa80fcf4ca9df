// SPDX-License-Identifier: Apache-2.0
// Early stopping counts evaluations that are no better than the best one.
#include <doctest/doctest.h>

#include <common/early_stopping.hpp>

#include <cmath>
#include <vector>

namespace {

// After how many of these it ends, 0: never.
int ends_after(std::int64_t patience, const std::vector<double>& losses) {
  example::early_stopping e{.patience = patience};
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (e.after(losses[i])) return static_cast<int>(i) + 1;
  return 0;
}

}  // namespace

TEST_CASE("early stopping: so many evaluations in a row that are no better than the best") {
  CHECK(ends_after(1, {5, 4, 3, 2}) == 0);
  CHECK(ends_after(1, {5, 4, 4}) == 3);  // equal is no better
  CHECK(ends_after(2, {5, 6, 4, 6, 3, 4, 5}) == 7);
  CHECK(ends_after(2, {5, 6, 5.5, 4}) == 3);  // better than the last one, and not than the best
  CHECK(ends_after(3, {5, 6, 6}) == 0);
  CHECK(ends_after(0, {5, 6, 7, 8, 9}) == 0);
  CHECK(ends_after(1, {std::nan(""), 1}) == 1);  // no number is no better
}

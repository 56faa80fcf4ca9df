// SPDX-License-Identifier: Apache-2.0
// Joins, views, indexing, paddings and fills in implicit mode, with uneven and empty shards: eager and traced, values
// and gradients, equal one rank's.
#include <doctest/doctest.h>

#include <families.hpp>

namespace {

using namespace test::families;

template <class F>
void on_ranks() {
  const results one = placed<F, 1, R, R, R>();
  REQUIRE(!one.empty());
  equal(placed<F, 3, S<0>, R, R>(), one);
  equal(placed<F, 4, S<0>, S<1>, S<0>>(), one);  // rows 2, 2, 1, 0
}

}  // namespace

TEST_CASE("families: joins and splits") { on_ranks<joined>(); }
TEST_CASE("families: views") { on_ranks<viewed>(); }
TEST_CASE("families: indexing") { on_ranks<indexed>(); }
TEST_CASE("families: frames and fills") { on_ranks<framed>(); }

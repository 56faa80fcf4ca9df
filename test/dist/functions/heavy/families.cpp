// SPDX-License-Identifier: Apache-2.0
// The same functions as ../families.cpp under more placements.
#include <doctest/doctest.h>

#include <families.hpp>

namespace {

using namespace test::families;

template <class F>
void on_ranks() {
  const results one = placed<F, 1, R, R, R>();
  REQUIRE(!one.empty());
  equal(placed<F, 2, S<0>, S<0>, S<0>>(), one);
  equal(placed<F, 2, S<1>, P, R>(), one);
  equal(placed<F, 3, P, S<0>, S<0>>(), one);
  equal(placed<F, 8, S<0>, S<1>, S<0>>(), one);
}

}  // namespace

TEST_CASE("families, more placements: joins and splits") { on_ranks<joined>(); }
TEST_CASE("families, more placements: views") { on_ranks<viewed>(); }
TEST_CASE("families, more placements: indexing") { on_ranks<indexed>(); }
TEST_CASE("families, more placements: frames and fills") { on_ranks<framed>(); }

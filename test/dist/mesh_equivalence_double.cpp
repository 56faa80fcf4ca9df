// SPDX-License-Identifier: Apache-2.0
// Training a small language model in float64 gives one rank's losses on every mesh, even or not.
#include <equivalence.hpp>

namespace {

using namespace test::gpt;

TEST_CASE("gpt in float64 on 2 data-parallel x 2 tensor-parallel ranks equals one rank") {
  check_equivalence<double, 2, 2>();
}
TEST_CASE("gpt in float64 on 4 data-parallel x 1 tensor-parallel ranks equals one rank") {
  check_equivalence<double, 4, 1>();
}
TEST_CASE("gpt in float64 on 1 data-parallel x 4 tensor-parallel ranks equals one rank") {
  check_equivalence<double, 1, 4>();
}
TEST_CASE("gpt in float64 on 1 data-parallel x 2 tensor-parallel ranks equals one rank") {
  check_equivalence<double, 1, 2>();
}
TEST_CASE("gpt in float64 on 3 data-parallel x 1 tensor-parallel ranks equals one rank, which do not divide the batch") {
  check_equivalence<double, 3, 1>();
}
TEST_CASE("gpt in float64 on 1 data-parallel x 3 tensor-parallel ranks equals one rank, which do not divide the heads") {
  check_equivalence<double, 1, 3>();
}
TEST_CASE("gpt in float64: two runs are bitwise equal") { check_reproducible<step<double, 2, 2>>(5); }

}  // namespace

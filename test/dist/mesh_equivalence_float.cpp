// SPDX-License-Identifier: Apache-2.0
// Training a small language model in float32 gives one rank's losses on every mesh, even or not.
#include <equivalence.hpp>

namespace {

using namespace test::gpt;

TEST_CASE("gpt in float32 on 2 data-parallel x 2 tensor-parallel ranks equals one rank") {
  check_equivalence<float, 2, 2>();
}
TEST_CASE("gpt in float32 on 4 data-parallel x 1 tensor-parallel ranks equals one rank") {
  check_equivalence<float, 4, 1>();
}
TEST_CASE("gpt in float32 on 1 data-parallel x 4 tensor-parallel ranks equals one rank") {
  check_equivalence<float, 1, 4>();
}
TEST_CASE("gpt in float32 on 1 data-parallel x 2 tensor-parallel ranks equals one rank") {
  check_equivalence<float, 1, 2>();
}
TEST_CASE("gpt in float32 on 3 data-parallel x 1 tensor-parallel ranks equals one rank, which do not divide the batch") {
  check_equivalence<float, 3, 1>();
}
TEST_CASE("gpt in float32 on 1 data-parallel x 3 tensor-parallel ranks equals one rank, which do not divide the heads") {
  check_equivalence<float, 1, 3>();
}
TEST_CASE("gpt in float32: two runs are bitwise equal") { check_reproducible<step<float, 2, 2>>(5); }

}  // namespace

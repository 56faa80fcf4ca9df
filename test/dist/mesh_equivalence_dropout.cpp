// SPDX-License-Identifier: Apache-2.0
// Dropout draws the same masks on every mesh and placement.
#include <equivalence.hpp>

namespace {

using namespace test::gpt;

TEST_CASE("gpt with dropout under tensor parallel on 2 x 2 ranks equals one rank") {
  check_equivalence<double, 2, 2, tensor_parallel, dropout_sizes>();
}
TEST_CASE("gpt with dropout under tensor parallel on 3 x 1 ranks equals one rank") {
  check_equivalence<double, 3, 1, tensor_parallel, dropout_sizes>();
}
TEST_CASE("gpt with dropout under sequence parallel on 1 x 3 ranks equals one rank") {
  check_equivalence<double, 1, 3, sequence_parallel, dropout_sizes>();
}
TEST_CASE("gpt with dropout: two runs are bitwise equal") {
  check_reproducible<step<double, 1, 3, sequence_parallel, dropout_sizes>>(5);
}
TEST_CASE("gpt with dropout: the masks depend on the seed and change the loss") {
  CHECK(one_rank<double, dropout_sizes>().losses[0][0] != one_rank<double, sizes>().losses[0][0]);
}

}  // namespace

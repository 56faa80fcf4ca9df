// SPDX-License-Identifier: Apache-2.0
// Sequence parallelism (norms and residuals split along time) gives one rank's losses.
#include <equivalence.hpp>

namespace {

using namespace test::gpt;

TEST_CASE("sequence-parallel gpt in float64 on 2 x 2 ranks equals one rank") {
  check_equivalence<double, 2, 2, sequence_parallel>();
}
TEST_CASE("sequence-parallel gpt in float64 on 1 x 4 ranks equals one rank") {
  check_equivalence<double, 1, 4, sequence_parallel>();
}
TEST_CASE("sequence-parallel gpt in float64 on 1 x 3 ranks equals one rank, uneven time and heads") {
  check_equivalence<double, 1, 3, sequence_parallel>();
}
TEST_CASE("sequence-parallel gpt in float32 on 2 x 2 ranks equals one rank") {
  check_equivalence<float, 2, 2, sequence_parallel>();
}

}  // namespace

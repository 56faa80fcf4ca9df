// SPDX-License-Identifier: Apache-2.0
// Training a small language model whose parameters are stored in shards gives one rank's losses on every mesh, even or not.
#include <equivalence.hpp>
#include <sharded_gpt.hpp>

namespace {

using namespace test::gpt;

template <class Dp, class Tp>
struct sharded : fully_sharded<Dp, Tp> {};

TEST_CASE("fsdp: gpt in float64 in shards of 2 ranks equals one rank") { check_equivalence<double, 2, 1, sharded>(); }
TEST_CASE("fsdp: gpt in float64 in shards of 4 ranks equals one rank") { check_equivalence<double, 4, 1, sharded>(); }
TEST_CASE("fsdp: gpt in float64 in shards of 3 ranks, which divide neither rows nor batch, equals one rank") {
  check_equivalence<double, 3, 1, sharded>();
}
TEST_CASE("fsdp: gpt in float64 in shards of 2 ranks x 2 tensor-parallel ranks equals one rank") {
  check_equivalence<double, 2, 2, sharded>();
}
TEST_CASE("fsdp: gpt in float64 in shards of 2 ranks x 3 tensor-parallel ranks, which do not divide the heads") {
  check_equivalence<double, 2, 3, sharded>();
}
TEST_CASE("fsdp: gpt in float64, one group of 4 ranks, equals one rank") { check_equivalence<double, 4, 1, one_group>(); }
TEST_CASE("fsdp: gpt in float64 in shards: two runs are bitwise equal") {
  check_reproducible<step<double, 2, 2, sharded>>(5);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Training a small language model whose parameters are stored in shards gives one rank's losses on every mesh, even or not.
#include <equivalence.hpp>

namespace {

using namespace test::gpt;
namespace sw = shardwise;

// A group of each block and one of the rest, beside attention split by heads and feed-forward by hidden units.
template <class Dp, class Tp>
struct fully_sharded {
  using type = sw::plan<
      sw::fully_shard<Dp>, sw::at<"layers.*", sw::fully_shard<Dp>>, sw::at<"layers.*.attention.wq", sw::colwise<Tp, head>>,
      sw::at<"layers.*.attention.wk", sw::colwise<Tp, head>>, sw::at<"layers.*.attention.wv", sw::colwise<Tp, head>>,
      sw::at<"layers.*.attention.wo", sw::rowwise<Tp, head>>, sw::at<"layers.*.feed_forward.w1", sw::colwise<Tp>>,
      sw::at<"layers.*.feed_forward.w2", sw::rowwise<Tp>>>;
};
// One group.
template <class Dp, class Tp>
struct one_group {
  using type = sw::plan<sw::fully_shard<Dp>>;
};

TEST_CASE("fsdp: gpt in float64 in shards of 2 ranks equals one rank") { check_equivalence<double, 2, 1, fully_sharded>(); }
TEST_CASE("fsdp: gpt in float64 in shards of 4 ranks equals one rank") { check_equivalence<double, 4, 1, fully_sharded>(); }
TEST_CASE("fsdp: gpt in float64 in shards of 3 ranks, which divide neither rows nor batch, equals one rank") {
  check_equivalence<double, 3, 1, fully_sharded>();
}
TEST_CASE("fsdp: gpt in float64 in shards of 2 ranks x 2 tensor-parallel ranks equals one rank") {
  check_equivalence<double, 2, 2, fully_sharded>();
}
TEST_CASE("fsdp: gpt in float64 in shards of 2 ranks x 3 tensor-parallel ranks, which do not divide the heads") {
  check_equivalence<double, 2, 3, fully_sharded>();
}
TEST_CASE("fsdp: gpt in float64, one group of 4 ranks, equals one rank") { check_equivalence<double, 4, 1, one_group>(); }
TEST_CASE("fsdp: gpt in float64 in shards: two runs are bitwise equal") {
  check_reproducible<step<double, 2, 2, fully_sharded>>(5);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Plans that store the parameters of the tests' language model in shards.
#pragma once

#include <shardwise/module/checkpoint.hpp>
#include <shardwise/module/fully_shard.hpp>

#include <gpt.hpp>

namespace test::gpt {

// A group of each block and one of the rest, beside attention split by heads and feed-forward by hidden units.
template <class Dp, class Tp, class... More>
struct fully_sharded {
  using type = sw::plan<
      sw::fully_shard<Dp>, sw::at<"layers.*", sw::fully_shard<Dp>>, sw::at<"layers.*.attention.wq", sw::colwise<Tp, head>>,
      sw::at<"layers.*.attention.wk", sw::colwise<Tp, head>>, sw::at<"layers.*.attention.wv", sw::colwise<Tp, head>>,
      sw::at<"layers.*.attention.wo", sw::rowwise<Tp, head>>, sw::at<"layers.*.feed_forward.w1", sw::colwise<Tp>>,
      sw::at<"layers.*.feed_forward.w2", sw::rowwise<Tp>>, More...>;
};
// The same, every block checkpointed.
template <class Dp, class Tp>
struct checkpointed_shards : fully_sharded<Dp, Tp, sw::at<"layers.*", sw::checkpoint>> {};
// One group.
template <class Dp, class Tp>
struct one_group {
  using type = sw::plan<sw::fully_shard<Dp>>;
};

}  // namespace test::gpt

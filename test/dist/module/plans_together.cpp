// SPDX-License-Identifier: Apache-2.0
// Elements of a plan beside each other: pieces of a batch, shards over two axes, states in shards, buckets and checkpoints train as one
// rank does on the whole batch.
#include <accumulated.hpp>
#include <doctest/doctest.h>

#include <shardwise/module/checkpoint.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/fuse/fuse.hpp>

namespace {

namespace acc = test::accumulated;
namespace sw = shardwise;
using acc::batch_axes;
using acc::blocks;
using acc::dp;
using acc::pieces;
using acc::rep;
using acc::tp;
using acc::with;
using sw::shard_optimizer_states;

constexpr int steps = 3;

template <class Plan, class Mesh, class Axes, class... P>
void check() {
  acc::as_on_one_rank<steps, Plan, Mesh, Axes, P...>();
}

using two = sw::mesh<dp<2>>;
using square = sw::mesh<rep<2>, dp<2>>;
using both = batch_axes<rep<2>, dp<2>>;
using tensor = acc::attention_and_mlp<tp<2>>;
using checkpointed = sw::at<"layers.*", sw::checkpoint>;

TEST_CASE("plans together: states in shards, in pieces, in buckets, checkpointed") {
  using states = sw::data_parallel<dp<2>, shard_optimizer_states>;
  check<sw::plan<states, pieces<2>>, two, batch_axes<dp<2>>>();
  check<sw::plan<states, checkpointed, pieces<2>>, two, batch_axes<dp<2>>, sw::fuse_kernels>();
  check<sw::plan<sw::data_parallel<dp<2>, sw::buckets<1>>, checkpointed, pieces<4>>, two, batch_axes<dp<2>>>();
  check<with<tensor, states, pieces<2>>, sw::mesh<dp<2>, tp<2>>, batch_axes<dp<2>>>();
}

TEST_CASE("plans together: shards over two axes, in pieces, checkpointed, prefetched") {
  using outer = rep<2>;
  using over = sw::shard_over<dp<2>>;
  using kept = sw::reshard_after_forward<2>;
  using plan = sw::plan<sw::fully_shard<outer, over>, blocks<outer, over, kept>, pieces<2>>;
  check<plan, square, both>();
  check<plan, square, both, sw::prefetch<>>();
  check<with<plan, checkpointed>, square, both>();
  check<with<tensor, sw::fully_shard<outer, over>, blocks<outer, over, kept>, pieces<2>>, sw::mesh<rep<2>, dp<2>, tp<2>>,
        both>();
}

}  // namespace

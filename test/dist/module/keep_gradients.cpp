// SPDX-License-Identifier: Apache-2.0
// Gradients that a step keeps from run to run: k batches and an update are the step that takes the same rows in k pieces.
#include <doctest/doctest.h>

#include <kept_gradients.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace {

namespace acc = test::accumulated;
namespace kept = test::kept;
namespace sw = shardwise;
using acc::batch_axes;
using acc::blocks;
using acc::dp;
using acc::rep;
using acc::tp;
using acc::with;

constexpr int steps = 3;

template <int N, class Plan, class Mesh, class Axes, class Keep = sw::keep_gradients<>, class... Passes>
void check() {
  using apart = kept::step<N, with<Plan, Keep>, Mesh, Axes, sw::pipeline<Passes...>>;
  const acc::history got = kept::train<N, apart, Axes>(steps);
  CHECK(acc::difference(got, acc::on_one_rank<steps>()) <= 1e-12);
  CHECK(acc::difference(got, kept::train<N, apart, Axes>(steps, true)) == 0);
  CHECK(std::abs(got.losses[0] - got.losses[2]) > 0.01);
}

TEST_CASE("kept gradients: one rank") {
  check<1, acc::replicated<1>, sw::mesh<dp<1>>, batch_axes<dp<1>>>();
  check<4, acc::replicated<1>, sw::mesh<dp<1>>, batch_axes<dp<1>>>();
}

TEST_CASE("kept gradients: data parallel") {
  check<2, acc::replicated<2>, sw::mesh<dp<2>>, batch_axes<dp<2>>>();
  check<2, acc::replicated<4>, sw::mesh<dp<4>>, batch_axes<dp<4>>>();
}

TEST_CASE("kept gradients: groups of fully_shard, and hybrid ones") {
  using two = sw::mesh<dp<2>>;
  using sharded = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>>;
  check<4, sharded, two, batch_axes<dp<2>>>();
  check<4, sharded, two, batch_axes<dp<2>>, sw::keep_gradients<sw::no_sync>>();
  using over = sw::replicate_over<rep<2>>;
  using hybrid = sw::plan<sw::fully_shard<dp<2>, over>, blocks<dp<2>, over>>;
  check<2, hybrid, sw::mesh<rep<2>, dp<2>>, batch_axes<rep<2>, dp<2>>>();
  check<2, hybrid, sw::mesh<rep<2>, dp<2>>, batch_axes<rep<2>, dp<2>>, sw::keep_gradients<sw::no_sync>>();
}
TEST_CASE("kept gradients: tensor parallel, beside data parallel and fully_shard") {
  using mesh = sw::mesh<dp<2>, tp<2>>;
  using tensor = acc::attention_and_mlp<tp<2>>;
  check<2, with<tensor, sw::data_parallel<dp<2>>>, mesh, batch_axes<dp<2>>>();
  check<2, with<tensor, sw::fully_shard<dp<2>>, blocks<dp<2>>>, mesh, batch_axes<dp<2>>, sw::keep_gradients<sw::no_sync>>();
}
TEST_CASE("kept gradients: passes") {
  using two = sw::mesh<dp<2>>;
  using axes = batch_axes<dp<2>>;
  using sharded = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>>;
  check<2, acc::replicated<2>, two, axes, sw::keep_gradients<>, sw::merge_common, sw::merge_products, sw::fuse_kernels,
        sw::join_norm_adjoints>();
  check<2, acc::replicated<2>, two, axes, sw::keep_gradients<>, sw::rematerialise<30>, sw::fuse_pointwise>();
  check<2, acc::replicated<2>, two, axes, sw::keep_gradients<>, sw::comm_fusion_in_place<1>, sw::raise_comms,
        sw::sink_waits>();
  check<2, sharded, two, axes, sw::keep_gradients<>, sw::prefetch<1>>();
  check<2, with<sharded, sw::at<"layers.*", sw::checkpoint>>, two, axes, sw::keep_gradients<sw::no_sync>, sw::prefetch<1>>();
}

}  // namespace

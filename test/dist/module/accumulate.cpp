// SPDX-License-Identifier: Apache-2.0
// A step that takes its batch in pieces is the step on the whole batch, up to rounding: the loss is a mean over rows of equal weight.
#include <accumulated.hpp>
#include <doctest/doctest.h>

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

constexpr int steps = 4;

template <class Plan, class Mesh, class Axes>
void check() {
  const acc::history got = acc::as_on_one_rank<steps, Plan, Mesh, Axes>();
  CHECK(std::abs(got.losses[0] - got.losses[3]) > 0.01);
}

TEST_CASE("one rank: in two, four and eight pieces") {
  check<with<acc::replicated<1>, pieces<1>>, sw::mesh<dp<1>>, batch_axes<dp<1>>>();
  check<with<acc::replicated<1>, pieces<2>>, sw::mesh<dp<1>>, batch_axes<dp<1>>>();
  check<with<acc::replicated<1>, pieces<4>>, sw::mesh<dp<1>>, batch_axes<dp<1>>>();
  check<with<acc::replicated<1>, pieces<8>>, sw::mesh<dp<1>>, batch_axes<dp<1>>>();
}

TEST_CASE("data parallel") {
  check<with<acc::replicated<2>, pieces<4>>, sw::mesh<dp<2>>, batch_axes<dp<2>>>();
  check<with<acc::replicated<4>, pieces<2>>, sw::mesh<dp<4>>, batch_axes<dp<4>>>();
}

TEST_CASE("groups of fully_shard, which free their parameters or keep them, and hybrid ones") {
  using two = sw::mesh<dp<2>>;
  check<sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>, pieces<4>>, two, batch_axes<dp<2>>>();
  check<sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>, sw::reshard_after_forward<false>>, pieces<2>>, two,
        batch_axes<dp<2>>>();
  check<sw::plan<sw::fully_shard<dp<4>>, blocks<dp<4>>, pieces<2>>, sw::mesh<dp<4>>, batch_axes<dp<4>>>();
  using over = sw::replicate_over<rep<2>>;
  check<sw::plan<sw::fully_shard<dp<2>, over>, blocks<dp<2>, over>, pieces<2>>, sw::mesh<rep<2>, dp<2>>,
        batch_axes<rep<2>, dp<2>>>();
}

TEST_CASE("tensor parallel, beside data parallel and fully_shard") {
  using mesh = sw::mesh<dp<2>, tp<2>>;
  using tensor = acc::attention_and_mlp<tp<2>>;
  check<with<tensor, sw::data_parallel<dp<2>>, pieces<2>>, mesh, batch_axes<dp<2>>>();
  check<with<tensor, sw::fully_shard<dp<2>>, blocks<dp<2>>, pieces<2>>, mesh, batch_axes<dp<2>>>();
}

}  // namespace

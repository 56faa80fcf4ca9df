// SPDX-License-Identifier: Apache-2.0
// Programs that keep gradients from run to run, on GPUs: both parts are captured, and train as on the host.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <kept_gradients.hpp>
#include <thrown.hpp>

namespace device_kept_gradients {

namespace acc = test::accumulated;
namespace kept = test::kept;
namespace sw = shardwise;
using acc::batch_axes;
using acc::blocks;
using acc::dp;
using acc::with;

template <int N, int Ranks, class Plan, class Keep = sw::keep_gradients<>>
void check() {
  if (!test::place::has(Ranks)) return;
  using axes = batch_axes<dp<Ranks>>;
  using step = kept::step<N, with<Plan, Keep>, sw::mesh<dp<Ranks>>, axes>;
  const acc::history got = kept::train<N, step, axes>(3);
  CHECK(acc::difference(got, acc::on_one_rank<3>()) <= 1e-10);
  CHECK(acc::difference(got, kept::train<N, step, axes>(3, true)) <= 1e-12);
}

TEST_CASE("one GPU") { check<4, 1, acc::replicated<1>>(); }
TEST_CASE("data parallel on two") { check<2, 2, acc::replicated<2>>(); }
TEST_CASE("shards on two, reduced by every batch, and by the update alone") {
  using sharded = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>>;
  check<2, 2, sharded>();
  check<2, 2, sharded, sw::keep_gradients<sw::no_sync>>();
}

TEST_CASE("an update without gradients is refused") {
  if (!test::place::has(1)) return;
  using step = kept::step<1, with<acc::replicated<1>, sw::keep_gradients<>>, sw::mesh<dp<1>>, batch_axes<dp<1>>>;
  test::place::launch<sw::mesh<dp<1>>>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    kept::feed_part<1, batch_axes<dp<1>>>(ex, 1, 0);
    CHECK(test::mentions(test::thrown([&] { ex.update(acc::numbers(1)); }), "no gradients have been added up"));
  });
}

}  // namespace device_kept_gradients

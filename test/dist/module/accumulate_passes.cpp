// SPDX-License-Identifier: Apache-2.0
// Steps that take their batch in pieces, with checkpoints, passes and iterations: the step without them.
#include <accumulated.hpp>
#include <doctest/doctest.h>

#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

namespace {

namespace acc = test::accumulated;
namespace sw = shardwise;
using acc::batch_axes;
using acc::blocks;
using acc::dp;
using acc::pieces;
using acc::with;

constexpr int steps = 3;
using two = sw::mesh<dp<2>>;
using axes = batch_axes<dp<2>>;
using plain_plan = with<acc::replicated<2>, pieces<2>>;
using sharded_plan = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>, pieces<2>>;

template <class Plan, class... P>
using step = acc::step<Plan, two, axes, sw::pipeline<P...>>;

const acc::history& plain() {
  static const acc::history h = acc::train<step<plain_plan>>(steps);
  return h;
}
template <class Plan, class... P>
void check(double tolerance) {
  CHECK(acc::difference(acc::train<step<Plan, P...>>(steps), plain()) <= tolerance);
}

TEST_CASE("checkpointed pieces") {
  check<with<plain_plan, sw::at<"layers.*", sw::checkpoint>>>(0);
  check<with<sharded_plan, sw::at<"layers.*", sw::checkpoint>>>(1e-12);
}

TEST_CASE("kernels and products are merged within a piece") {
  check<plain_plan, sw::merge_common, sw::merge_products, sw::fuse_kernels>(1e-12);
  check<plain_plan, sw::rematerialise<30>, sw::fuse_kernels>(1e-12);
}

TEST_CASE("collectives are fused, prefetched and hidden") {
  check<plain_plan, sw::fused_optimizer, sw::comm_fusion_in_place<1>>(1e-12);
  check<sharded_plan, sw::prefetch<1>>(1e-12);
}

TEST_CASE("the bucket of gradients and its updates run in the next iteration") {
  using bucketed =
      sw::train_step<acc::model, acc::language_mean<acc::rows, axes>, plain_plan, two, sw::adam<>,
                     sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>, double>;
  using iterations =
      sw::iterated<bucketed, sw::iter_move_grads_and_optimizers<"all_reduce", "embedding">, sw::raise_comms, sw::sink_waits>;
  static_assert(iterations::kept_values > 0);
  const auto number = [](int s) {
    sw::step_env env = acc::numbers(s);
    env.lr = 0.01;
    return env;
  };
  std::vector<double> once, moved;
  sw::launch<two>([&](auto& rank) {
    sw::executor<bucketed> run(rank, sw::executor_checks::poison);
    sw::iterated_executor<iterations> later(rank, sw::executor_checks::poison);
    run.initialise(7);
    later.main().initialise(7);
    for (int s = 1; s <= steps; ++s) {
      acc::feed(run, s);
      run.run(number(s));
      acc::feed(later.main(), s);
      later.run(number(s), s == steps);
      const double a = run.loss(), b = later.loss();
      if (rank.index() != 0) continue;
      once.push_back(a);
      moved.push_back(b);
    }
  });
  CHECK(once[0] != once[2]);
  CHECK(moved == once);
}

}  // namespace

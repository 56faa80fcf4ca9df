// SPDX-License-Identifier: Apache-2.0
// Passes keep what a step writes into buffers: every pipeline leaves the losses, parameters, buffers and evaluations that the step
// without passes leaves, and so do moves into the next iteration.
#include <running_norm.hpp>

#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

namespace {

using namespace test::running;
namespace sw = shardwise;

template <class... P>
using step = sw::train_step<models<dp<2>>::net_of, fit<double, 2, 7>, split_plan<2, 2>, mesh<2, 2>, sw::adam<>,
                            sw::pipeline<P...>, double>;
template <class... P>
using judge = evaluation<2, 2, split_plan, sw::pipeline<P...>>;

const history<double>& plain() {
  static const history<double> h = train_and_judge<step<>, judge<>>(4);
  return h;
}
template <class... P>
double apart() {
  return difference(plain(), train_and_judge<step<P...>, judge<>>(4));
}

}  // namespace

TEST_CASE("passes keep buffers: simplification and rematerialisation, bit for bit") {
  CHECK(apart<sw::cancel_redistributions, sw::merge_common>() == 0);
  CHECK(apart<sw::rematerialise<50>>() == 0);
  CHECK(apart<sw::rematerialise<0>>() == 0);
}
TEST_CASE("passes keep buffers: fusion") {
  CHECK(apart<sw::fuse_pointwise>() < 1e-12);
  CHECK(apart<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>() < 1e-12);
  CHECK(apart<sw::partial_lower<sw::core_operations, 2>>() < 1e-12);
}
TEST_CASE("passes keep buffers: collectives in buckets, lists of updates, waits") {
  CHECK(apart<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>() < 1e-12);
  CHECK(apart<sw::foreach_optimizer, sw::comm_fusion_with_concat<>, sw::schedule_comm_wait>() < 1e-12);
  CHECK(apart<sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>() == 0);
  CHECK(apart<sw::comm_fusion_in_place<>, sw::schedule_comm_wait, sw::fuse_kernels>() < 1e-12);
}
TEST_CASE("passes keep buffers: an evaluation under passes") {
  CHECK(difference(plain(), train_and_judge<step<>, judge<sw::cancel_redistributions, sw::merge_common, sw::fuse_kernels>>(
                                4)) < 1e-12);
}

namespace {

// Moved before the first matrix product of the next iteration: the bucket of all gradients, and their updates. What the step
// writes into buffers stays.
using listed = step<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>;

history<double> moved() {
  using moves =
      sw::iterated<listed, sw::iter_move_grads_and_optimizers<"all_reduce_5", "einsum">, sw::raise_comms, sw::sink_waits>;
  history<double> h;
  h.losses.resize(4);
  h.parameters = plain().parameters;
  h.buffers = plain().buffers;
  for (auto* all : {&h.parameters, &h.buffers})
    for (auto& v : *all) std::fill(v.begin(), v.end(), 0);
  sw::launch<mesh<2, 2>>([&](auto& rank) {
    sw::iterated_executor<moves> run(rank, sw::executor_checks::poison);
    static_assert(moves::kept_values > 0 && moves::main::buffer_total == 2);
    auto& main = run.main();
    main.initialise(5);
    for (int s = 1; s <= 4; ++s) {
      main.set_input(0, numbers<double>(35, s));
      main.set_input(1, numbers<double>(21, s + 20));
      run.run(step_numbers(s), s == 4);
      if (rank.index() == 0) h.losses[static_cast<std::size_t>(s - 1)] = run.loss();
    }
    for (int i = 0; i < main.parameter_count(); ++i) main.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
    for (int i = 0; i < main.buffer_count(); ++i) main.gather_buffer(i, h.buffers[static_cast<std::size_t>(i)]);
  });
  h.before = plain().before;
  h.after = plain().after;
  return h;
}

}  // namespace

TEST_CASE("moves into the next iteration keep buffers") { CHECK(difference(plain(), moved()) < 1e-12); }

// SPDX-License-Identifier: Apache-2.0
// Runs under shard_optimizer_states: what data parallelism computes, bit for bit, on ranks that divide no rows, some without any;
// with every optimizer, clipping, tensor parallelism, buffers that are written, dropout, passes and iterations.
#include <running_norm.hpp>

#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace test::running;
namespace sw = shardwise;
using sw::shard_optimizer_states;

template <int D, int N>
using states_plan = sw::plan<sw::data_parallel<dp<D>, shard_optimizer_states>>;
template <int D, int N>
using states_and_split = sw::plan<sw::data_parallel<dp<D>, shard_optimizer_states>, sw::at<"up", sw::colwise<tp<N>>>,
                                  sw::at<"norm", split_features<tp<N>>>, sw::at<"down", sw::rowwise<tp<N>>>>;
template <int D, int N>
using averaged_whole = sw::plan<sw::data_parallel<dp<D>, sw::average_gradients>>;
template <int D, int N>
using averaged_states = sw::plan<sw::data_parallel<dp<D>, shard_optimizer_states, sw::average_gradients>>;

template <int D, int N, template <int, int> class Plan, class Optimizer, class... P>
history<double> trained(int steps) {
  using step = sw::train_step<models<dp<D>>::template net_of, fit<double, D, 7>, Plan<D, N>, mesh<D, N>, Optimizer,
                              sw::pipeline<P...>, double>;
  return train_and_judge<step, evaluation<D, N, Plan>>(steps);
}

// On the same ranks to the last bit, since each element has the same summands in the same order; on one rank up to that order.
template <int D, class Optimizer>
void check_ranks() {
  CAPTURE(D);
  const history<double> states = trained<D, 1, states_plan, Optimizer>(4);
  CHECK(difference(states, trained<D, 1, whole_plan, Optimizer>(4)) == 0);
  CHECK(difference(states, trained<1, 1, whole_plan, Optimizer>(4)) < 1e-12);
}
TEST_CASE("shard_optimizer_states: 1, 2, 3 and 4 ranks, 6, 5 and 3 rows: data parallelism with momentum") {
  check_ranks<1, sw::sgd<true>>();
  check_ranks<2, sw::sgd<true>>();
  check_ranks<3, sw::sgd<true>>();
  check_ranks<4, sw::sgd<true>>();
  CHECK(difference(trained<3, 1, states_plan, sw::sgd<>>(3), trained<3, 1, whole_plan, sw::sgd<>>(3)) == 0);
}
// Adam makes steps of the rounding in gradients that are zero, so it is compared on the same ranks.
TEST_CASE("shard_optimizer_states: Adam and AdamW") {
  CHECK(difference(trained<2, 1, states_plan, sw::adam<>>(4), trained<2, 1, whole_plan, sw::adam<>>(4)) == 0);
  CHECK(difference(trained<3, 1, states_plan, sw::adamw<true>>(4), trained<3, 1, whole_plan, sw::adamw<true>>(4)) == 0);
  CHECK(difference(trained<4, 1, states_plan, sw::adam<>>(4), trained<4, 1, whole_plan, sw::adam<>>(4)) == 0);
}

TEST_CASE("shard_optimizer_states beside tensor parallelism, which splits rows first") {
  CHECK(difference(trained<2, 2, states_and_split, sw::adam<>>(4), trained<2, 2, split_plan, sw::adam<>>(4)) == 0);
  CHECK(difference(trained<3, 2, states_and_split, sw::sgd<true>>(4), trained<3, 2, split_plan, sw::sgd<true>>(4)) == 0);
  CHECK(difference(trained<2, 4, states_and_split, sw::sgd<true>>(4), trained<2, 4, split_plan, sw::sgd<true>>(4)) == 0);
}

TEST_CASE("shard_optimizer_states with averaged gradients") {
  CHECK(difference(trained<3, 1, averaged_states, sw::adam<>>(3), trained<3, 1, averaged_whole, sw::adam<>>(3)) == 0);
}

// --- clipping: the norm has each element once, whoever holds it -----------------------------------------------------------

template <int D, int N>
using mixed_plan = sw::plan<sw::data_parallel<dp<D>, shard_optimizer_states>, sw::at<"up", sw::data_parallel<dp<D>>>>;

// A bound that every step exceeds. env.max_norm is 1 in step_numbers.
TEST_CASE("shard_optimizer_states: the norm of gradients in shards") {
  using clipped = sw::clip_norm<sw::sgd<true>>;
  sw::launch<mesh<3, 1>>([](auto& rank) {
    using task = fit<double, 3, 7>;
    using model = models<dp<3>>;
    using states = sw::train_step<model::net_of, task, states_plan<3, 1>, mesh<3, 1>, clipped, sw::pipeline<>, double>;
    using mixed = sw::train_step<model::net_of, task, mixed_plan<3, 1>, mesh<3, 1>, clipped, sw::pipeline<>, double>;
    using whole = sw::train_step<model::net_of, task, whole_plan<3, 1>, mesh<3, 1>, clipped, sw::pipeline<>, double>;
    sw::executor<states> a(rank);
    sw::executor<mixed> b(rank);
    sw::executor<whole> c(rank);
    a.initialise(5);
    b.initialise(5);
    c.initialise(5);
    const auto run = [&](auto& ex, int s, double bound) {
      sw::step_env env = step_numbers(s);
      env.max_norm = bound;
      ex.set_input(0, numbers<double>(35, s));
      ex.set_input(1, numbers<double>(21, s + 20));
      ex.run(env);
    };
    double moved = 0, apart = 0;
    for (int s = 1; s <= 4; ++s) {
      run(a, s, 0.05);
      run(b, s, 0.05);
      run(c, s, 0.05);
    }
    const std::vector<double> before = c.full_parameter("down.weight");
    for (const char* name : {"up.weight", "up.bias", "norm.weight", "norm.bias", "down.weight", "down.bias"}) {
      const auto x = a.full_parameter(name), y = b.full_parameter(name), z = c.full_parameter(name);
      for (std::size_t i = 0; i < z.size(); ++i) apart = std::max({apart, std::abs(x[i] - z[i]), std::abs(y[i] - z[i])});
    }
    CHECK(apart < 1e-14);
    run(c, 5, 1e9);  // what is not clipped moves further
    const auto after = c.full_parameter("down.weight");
    for (std::size_t i = 0; i < after.size(); ++i) moved = std::max(moved, std::abs(after[i] - before[i]));
    CHECK(moved > 0.01);
  });
}

TEST_CASE("shard_optimizer_states: a module that keeps its states whole, the last style of the axis") {
  CHECK(difference(trained<4, 1, mixed_plan, sw::adam<>>(3), trained<4, 1, whole_plan, sw::adam<>>(3)) == 0);
}

TEST_CASE("shard_optimizer_states under passes") {
  const history<double> plain = trained<3, 1, states_plan, sw::adam<>>(3);
  const auto apart = [&]<class... P>(sw::pipeline<P...>) {
    return difference(plain, trained<3, 1, states_plan, sw::adam<>, P...>(3));
  };
  CHECK(apart(sw::pipeline<sw::cancel_redistributions, sw::merge_common>{}) == 0);
  CHECK(apart(sw::pipeline<sw::batch_collectives, sw::raise_comms, sw::sink_waits>{}) == 0);
  CHECK(apart(sw::pipeline<sw::comm_fusion_in_place<>, sw::fused_optimizer>{}) == 0);
  CHECK(apart(sw::pipeline<sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits>{}) == 0);
  CHECK(apart(sw::pipeline<sw::rematerialise<100>, sw::merge_products, sw::fuse_kernels>{}) < 1e-12);
}

// Lists of rows, with uneven rows and empty shards, beside lists of whole parameters, behind batches and beside what splits rows first.
template <int D, int N, template <int, int> class Plan, class Optimizer, class... P>
void check_list() {
  CAPTURE(D);
  const history<double> each = trained<D, N, Plan, Optimizer>(3);
  CHECK(difference(each, trained<D, N, Plan, Optimizer, P...>(3)) == 0);
}
TEST_CASE("shard_optimizer_states over lists of parameters") {
  check_list<2, 1, states_plan, sw::adam<>, sw::fused_optimizer>();
  check_list<3, 1, states_plan, sw::adamw<true>, sw::foreach_optimizer>();
  check_list<4, 1, states_plan, sw::adamw<true>, sw::merge_common, sw::batch_collectives, sw::fused_optimizer>();
  check_list<4, 1, mixed_plan, sw::adam<>, sw::fused_optimizer>();
  check_list<2, 2, states_and_split, sw::adam<>, sw::foreach_optimizer, sw::raise_comms, sw::sink_waits>();
  check_list<3, 1, states_plan, sw::adam<>, sw::fused_optimizer, sw::merge_common, sw::fuse_kernels>();
}

// The last layer's rows are updated and gathered in the next iteration, before its forward pass.
TEST_CASE("shard_optimizer_states: an update in the next iteration") {
  using step = sw::train_step<models<dp<4>>::net_of, fit<double, 4, 7>, states_plan<4, 1>, mesh<4, 1>, sw::sgd<true>,
                              sw::pipeline<>, double>;
  using moves = sw::iterated<step, sw::move_descendants<"einsum", "reduce_scatter_4", "reduce_scatter_5">>;
  const history<double> plain = trained<4, 1, states_plan, sw::sgd<true>>(4);
  history<double> h = plain;
  for (auto& v : h.parameters) std::fill(v.begin(), v.end(), 0);
  sw::launch<mesh<4, 1>>([&](auto& rank) {
    sw::iterated_executor<moves> run(rank, sw::executor_checks::poison);
    auto& main = run.main();
    main.initialise(5);
    for (int s = 1; s <= 4; ++s) {
      main.set_input(0, numbers<double>(35, s));
      main.set_input(1, numbers<double>(21, s + 20));
      run.run(step_numbers(s), s == 4);
      if (rank.index() == 0) h.losses[static_cast<std::size_t>(s - 1)] = run.loss();
    }
    for (int i = 0; i < main.parameter_count(); ++i) main.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
  });
  CHECK(difference(plain, h) == 0);
}

}  // namespace

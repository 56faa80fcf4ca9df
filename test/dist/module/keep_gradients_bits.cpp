// SPDX-License-Identifier: Apache-2.0
// Gradients that a step keeps from run to run, bit by bit: k batches and an update are the step that takes the same rows in k pieces,
// with its draws, buffers, optimizer states, metrics, groups of parameters, precision and passes.
#include <doctest/doctest.h>

#include <kept_gradients.hpp>
#include <running_norm.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace {

namespace running = test::running;
namespace sw = shardwise;
using running::dp;
using running::tp;
using test::accumulated::with;

constexpr int batches = 3;

// The mean over rows, over Over.
template <class T, int D, int Rows, int Over>
struct fit {
  using inputs = typename running::fit<T, D, Rows>::inputs;
  static constexpr auto loss(const auto& y, const auto& t) {
    const auto apart = sw::cast<T>(y) - t;
    return sw::scale(sw::mean(apart * apart), 1.0 / Over);
  }
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto y = model(x);
    return sw::outputs(sw::named<"loss">(loss(y, t)), sw::named<"sum">(sw::sum(sw::cast<T>(y))));
  }
};

template <class T>
struct trained {
  std::vector<T> losses, sums;
  std::vector<std::vector<T>> values;  // parameters, buffers, states

  bool operator==(const trained&) const = default;
};

// Two steps of Rows rows; Kept: as batches that are added up.
template <class Step, bool Kept, int D, int Rows>
auto train(sw::random_policy draws = sw::random_policy::by_element) {
  using T = typename Step::element;
  trained<T> h;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    for (int s = 1; s <= 2; ++s) {
      sw::env_of<Step> env;
      env.seed = 11;
      env.step = s;
      env.lr = 0.05;
      env.momentum = 0.9;
      env.max_norm = 0.25;
      env.random = draws;
      if constexpr (sw::program_traits<Step>::param_groups::count > 0) env.template group<"slow">().lr = 0.01;
      const std::vector<T> x = running::numbers<T>(Rows * 5, s), t = running::numbers<T>(Rows * 3, s + 20);
      if constexpr (Kept) {
        T loss = 0;
        for (int k = 0; k < batches; ++k) {
          ex.set_input(0, test::kept::piece_of(x, D, batches, k, 5));
          ex.set_input(1, test::kept::piece_of(t, D, batches, k, 3));
          ex.accumulate(env);
          loss += ex.loss();
          const T sum = ex.template output<"sum">().item();
          if (rank.index() == 0) h.sums.push_back(sum);
        }
        ex.update(env);
        if (rank.index() == 0) h.losses.push_back(loss);
      } else {
        ex.set_input(0, x);
        ex.set_input(1, t);
        ex.run(env);
        const auto sums = ex.template output<"sum">();
        if (rank.index() == 0) {
          h.losses.push_back(ex.loss());
          h.sums.insert(h.sums.end(), sums.data.begin(), sums.data.end());
        }
      }
    }
    std::vector<std::vector<T>> values;
    for (int i = 0; i < ex.parameter_count(); ++i) values.push_back(ex.full_parameter(ex.parameter_name(i), 0));
    for (int i = 0; i < ex.buffer_count(); ++i) values.push_back(ex.full_buffer(ex.buffer_name(i), 0));
    for (int i = 0; i < Step::optimizer::states * ex.parameter_count(); ++i)
      values.push_back(ex.full_state(ex.parameter_name(i / Step::optimizer::states),
                                     i % Step::optimizer::states == 0 ? sw::moment::first : sw::moment::second, 0));
    if (rank.index() == 0) h.values = values;
  });
  return h;
}

template <class T, int D, int N, int Rows, class Plan, class Optimizer, class Pipeline>
struct both {
  template <class P, int R, int Over>
  using step = sw::train_step<running::models<dp<D>>::template net_of, fit<T, D, R, Over>, P, running::mesh<D, N>, Optimizer,
                              Pipeline, T>;
  using together = step<with<Plan, sw::accumulate<batches>>, Rows, 1>;
  template <class Keep>
  using apart = step<with<Plan, Keep>, Rows / batches, batches>;
};
// Losses are added up in another place.
template <class T>
void check_same(trained<T> got, const trained<T>& want) {
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    CHECK(static_cast<double>(got.losses[i]) == doctest::Approx(static_cast<double>(want.losses[i])).epsilon(1e-13));
  got.losses = want.losses;
  CHECK(got == want);
  CHECK(got.values[0] != std::vector<T>(got.values[0].size()));
}
template <int D, int N, int Rows, class Plan, class Optimizer = sw::clip_norm<sw::adam<>>, class Pipeline = sw::pipeline<>,
          class T = double>
void check(sw::random_policy draws = sw::random_policy::by_element) {
  using two = both<T, D, N, Rows, Plan, Optimizer, Pipeline>;
  check_same(train<typename two::template apart<sw::keep_gradients<>>, true, D, Rows>(draws),
             train<typename two::together, false, D, Rows>(draws));
}

template <int D, int N>
using split = running::split_plan<D, N>;
template <int D, int N>
using whole = running::whole_plan<D, N>;

TEST_CASE("kept gradients: the bits of accumulate, with draws, buffers and metrics, on 1 to 4 ranks") {
  check<1, 1, 12, split<1, 1>>();
  check<2, 1, 12, split<2, 1>, sw::sgd<true>>();
  check<3, 1, 18, split<3, 1>>();
  check<2, 2, 12, split<2, 2>>();
  check<1, 2, 12, split<1, 2>>(sw::random_policy::by_offset);
  check<4, 1, 24, split<4, 1>, sw::sgd<>>();
}

TEST_CASE(
    "kept gradients: the bits of accumulate, with averages, buckets, states in shards, groups of parameters and frozen ones") {
  check<2, 1, 12, sw::plan<sw::data_parallel<dp<2>, sw::average_gradients, sw::buckets<25>>>>();
  check<2, 1, 12, sw::plan<sw::data_parallel<dp<2>, sw::shard_optimizer_states>>>();
  check<2, 1, 12, with<split<2, 1>, sw::at<"down", sw::param_group<"slow">>>>();
  check<2, 1, 12, with<split<2, 1>, sw::at<"up", sw::checkpoint>>>();
}

TEST_CASE("kept gradients: the bits of accumulate, with passes") {
  using plan = whole<2, 1>;
  check<2, 1, 12, plan, sw::adam<>, sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<1>>>();
  check<2, 1, 12, plan, sw::adam<>, sw::pipeline<sw::comm_fusion_with_concat<1>, sw::schedule_comm_wait>>();
  check<2, 1, 12, plan, sw::adam<>, sw::pipeline<sw::merge_common, sw::raise_comms, sw::sink_waits>>();
  check<2, 1, 12, plan, sw::adam<>, sw::pipeline<sw::rematerialise<30>>>();
}

}  // namespace

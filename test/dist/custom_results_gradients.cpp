// SPDX-License-Identifier: Apache-2.0
// Gradients that are results of one kernel, in buckets, lists, updates, and moved to the next iteration with the node that has them.
#include <doctest/doctest.h>

#include <custom_results.hpp>
#include <results_run.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/runtime/executor/iterated.hpp>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::results;

struct by_one_kernel {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::call<fused_back::scale>(x, w); }
};
struct by_mul {
  constexpr auto operator()(const auto& x, const auto& w) const { return x * w; }
};
template <class F>
struct scaled {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    using first_type = sw::parameter<sw::shape<6>, sw::init::normal<1, 1>, sw::child<Bound, 0>>;
    using second_type = sw::parameter<sw::shape<6>, sw::init::normal<1, 1>, sw::child<Bound, 1>>;
    BOOST_HANA_DEFINE_STRUCT(model, (first_type, first), (second_type, second));
    constexpr auto forward(const auto& x) const { return F{}(sw::tanh(F{}(x, first)), second); }
  };
};
template <class F, int D, class Optimizer = sw::adam<>, class Pipeline = sw::pipeline<>>
using scaled_step = sw::train_step<scaled<F>::template model, task<dp<D>>, sw::plan<sw::data_parallel<dp<D>>>, mesh<D, 1>,
                                   Optimizer, Pipeline, double>;

TEST_CASE("several results: gradients that one kernel computes go to buckets, lists and updates") {
  const std::vector<double> want = train<scaled_step<by_mul, 1>>();
  CHECK(apart(want, train<scaled_step<by_one_kernel, 1>>()) < 1e-12);
  CHECK(apart(want, train<scaled_step<by_one_kernel, 3>>()) < 1e-12);
  CHECK(apart(want, train<scaled_step<by_one_kernel, 2, sw::adam<>, sw::pipeline<sw::comm_fusion_in_place<>>>>()) < 1e-12);
  CHECK(apart(want, train<scaled_step<by_one_kernel, 2, sw::adam<>,
                                      sw::pipeline<sw::comm_fusion_with_concat<>, sw::expedite_comms>>>()) < 1e-12);
  using listed = sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::schedule_comm_wait>;
  CHECK(apart(want, train<scaled_step<by_one_kernel, 2, sw::adam<>, listed>>()) < 1e-12);
}

// What depends on node From, the update of the first parameter, runs in the next call.
template <sw::fixed_string From, int D>
void check_moved(const std::vector<double>& want) {
  using moved = sw::iterated<scaled_step<by_one_kernel, D, sw::sgd<>>, sw::move_descendants<"scale_rows", From>>;
  std::vector<double> losses;
  sw::launch<mesh<D, 1>>([&](auto& rank) {
    sw::iterated_executor<moved> run(rank);
    run.main().initialise(1);
    sw::step_env env;
    env.lr = 0.01;
    std::vector<double> here;
    for (env.step = 1; env.step <= 4; ++env.step) {
      run.main().set_input(0, some(12 * 6, 2));
      run.run(env, env.step == 4);
      here.push_back(run.loss());
    }
    if (rank.index() == 0) losses = here;
  });
  CHECK(apart(want, losses) < 1e-12);
}

TEST_CASE("several results: the node with the results, or what reads one of them, moves to the next iteration") {
  const std::vector<double> want = train<scaled_step<by_mul, 1, sw::sgd<>>>();
  check_moved<"scale_back_1", 1>(want);
  check_moved<"scale_back_1", 2>(want);
  check_moved<"getitem_2", 2>(want);  // it stays with its node, and is kept
  check_moved<"all_reduce_1", 2>(want);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// report_norm: the norm that a step keeps is that of the plain loops' gradients, before anything clips it, on 1 to 4 ranks, in every way
// that gradients and states are placed and passes rewrite updates; reporting changes no bit of what is trained.
#include <shardwise/shardwise.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/module/muon.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <files.hpp>
#include <gradient_norm.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;

using namespace gradient_norms;

template <class Optimizer, class Pipeline, int N, class... E>
void check_plan() {
  check_norm<step<double, N, sw::report_norm<sw::clip_norm<Optimizer>>, Pipeline, E...>,
             step<double, N, sw::clip_norm<Optimizer>, Pipeline, E...>>(1e-12, 0.1);
}
template <class Optimizer, class Pipeline, class... More>
void check_ranks() {
  check_plan<Optimizer, Pipeline, 1, sw::data_parallel<dp<1>>, More...>();
  check_plan<Optimizer, Pipeline, 2, sw::fully_shard<dp<2>>, More...>();
  check_plan<Optimizer, Pipeline, 3, sw::data_parallel<dp<3>>, More...>();
  check_plan<Optimizer, Pipeline, 4, sw::fully_shard<dp<4>>, More...>();
}

// Two layers, cut over two axes in different ways; `norm` of one rank's run is what all others must find.
template <int N>
struct tp : sw::axis<N> {};
template <class Bound = sw::unbound>
struct two_layers : sw::module<two_layers<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<in, 6>, up), (sw::linear<6, out>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
template <int D, int N>
using grid = sw::mesh<dp<D>, tp<N>>;
template <int D, int N, class Optimizer, class... E>
using cut_step = sw::train_step<two_layers, fit<double, D>,
                                sw::plan<E..., sw::at<"up", sw::colwise<tp<N>>>, sw::at<"down", sw::rowwise<tp<N>>>>,
                                grid<D, N>, Optimizer, sw::pipeline<>, double>;
template <class Step>
std::vector<double> norms_of() {
  std::vector<double> all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank, sw::executor_checks::poison);
    run.initialise(3);
    for (int s = 1; s <= 3; ++s) {
      run.set_input(0, numbers<double>(rows * in, s, 0));
      run.set_input(1, numbers<double>(rows * out, s, 5));
      run.run(env_at(s, 0.1));
      if (rank.index() == Step::mesh_type::size - 1) all.push_back(run.gradient_norm());
    }
  });
  return all;
}

using fused = sw::pipeline<sw::fused_optimizer>;
using lists = sw::pipeline<sw::comm_fusion_with_concat<>, sw::foreach_optimizer, sw::remove_copy_from_optimizer>;
using parts = sw::pipeline<sw::fused_optimizer, sw::split_fused_optimizer<0, 1>>;

}  // namespace

TEST_CASE("gradient norm: it is what clipping found, on 1 to 4 ranks, and nothing else changes") {
  check_ranks<sw::adamw<true>, sw::pipeline<>>();
  check_plan<sw::adam<>, sw::pipeline<>, 3, sw::data_parallel<dp<3>, sw::shard_optimizer_states>>();
  check_plan<sw::adamw<>, sw::pipeline<>, 3, sw::fully_shard<dp<3>, sw::flat_parameters>>();
  check_plan<sw::muon<>, sw::pipeline<>, 2, sw::data_parallel<dp<2>>>();
}

TEST_CASE("gradient norm: whatever passes make of the update") {
  check_plan<sw::adamw<>, fused, 4, sw::fully_shard<dp<4>>>();
  check_plan<sw::adamw<>, lists, 3, sw::data_parallel<dp<3>>>();
  check_plan<sw::adam<>, parts, 2, sw::data_parallel<dp<2>>>();
}

TEST_CASE("gradient norm: of an optimizer that clips nothing, or values, and before it does") {
  check_norm<step<double, 3, sw::report_norm<sw::sgd<true>>, sw::pipeline<>, sw::data_parallel<dp<3>>>,
             step<double, 3, sw::sgd<true>, sw::pipeline<>, sw::data_parallel<dp<3>>>>(1e-12, 1);
  check_norm<step<double, 2, sw::report_norm<sw::clip_value<sw::adamw<>>>, sw::pipeline<>, sw::fully_shard<dp<2>>>,
             step<double, 2, sw::clip_value<sw::adamw<>>, sw::pipeline<>, sw::fully_shard<dp<2>>>>(1e-12, 1);
}

TEST_CASE("gradient norm: without the loss's scale, a fixed one or one that adjusts itself") {
  using half = sw::mixed<sw::f16>;
  check_norm<
      step<float, 2, sw::report_norm<sw::clip_norm<sw::adamw<>>>, sw::pipeline<>, sw::data_parallel<dp<2>>, half,
           sw::loss_scale<1024>>,
      step<float, 2, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>, half, sw::loss_scale<1024>>>(5e-3,
                                                                                                                        0.1);
  check_norm<step<float, 2, sw::report_norm<sw::clip_norm<sw::adamw<>>>, sw::pipeline<>, sw::data_parallel<dp<2>>, half,
                  sw::dynamic_loss_scale<1024>>,
             step<float, 2, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>, half,
                  sw::dynamic_loss_scale<1024>>>(5e-3, 0.1);
  check_norm<step<float, 2, sw::report_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>, half,
                  sw::dynamic_loss_scale<1024>>,
             step<float, 2, sw::adamw<>, sw::pipeline<>, sw::data_parallel<dp<2>>, half, sw::dynamic_loss_scale<1024>>>(5e-3,
                                                                                                                        0.1);
}

TEST_CASE("gradient norm: a step that a loss scale skips reports what it found") {
  using task_step = step<float, 2, sw::report_norm<sw::sgd<>>, sw::pipeline<>, sw::data_parallel<dp<2>>, sw::mixed<sw::f16>,
                         sw::dynamic_loss_scale<1024>>;
  sw::launch<task_step::mesh_type>([&](auto& rank) {
    sw::executor<task_step> run(rank);
    run.initialise(7);
    std::vector<float> x = numbers<float>(rows * in, 1, 0);
    run.set_input(1, numbers<float>(rows * out, 1, 5));
    x[0] = std::numeric_limits<float>::infinity();
    run.set_input(0, x);
    run.run(env_at(1, 1));
    CHECK_FALSE(std::isfinite(run.gradient_norm()));
    CHECK(run.scaler_state().skipped_steps == 1);
  });
}

TEST_CASE("gradient norm: of kept gradients it is that of their sum, and accumulating leaves it") {
  using kept = step<double, 2, sw::report_norm<sw::clip_norm<sw::adamw<>>>, sw::pipeline<>, sw::data_parallel<dp<2>>,
                    sw::keep_gradients<>>;
  sw::launch<kept::mesh_type>([&](auto& rank) {
    sw::executor<kept> run(rank, sw::executor_checks::poison);
    run.initialise(7);
    const double expected = norm_of(run.full_parameter("line.weight"), run.full_parameter("line.bias"), 1);
    run.set_input(0, numbers<double>(rows * in, 1, 0));
    run.set_input(1, numbers<double>(rows * out, 1, 5));
    run.accumulate(env_at(1, 0.1));
    run.accumulate(env_at(1, 0.1));
    CHECK(run.gradient_norm() == 0);
    run.update(env_at(1, 0.1));
    CHECK(std::fabs(run.gradient_norm() - 2 * expected) <= 1e-12 * expected);
    run.accumulate(env_at(2, 0.1));
    CHECK(std::fabs(run.gradient_norm() - 2 * expected) <= 1e-12 * expected);
  });
}

TEST_CASE("gradient norm: a checkpoint has nothing of it, so that runs with and without a report read each other's") {
  const test::folder folder;
  using with = step<double, 2, sw::report_norm<sw::clip_norm<sw::adamw<>>>, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  using without = step<double, 2, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  sw::launch<with::mesh_type>([&](auto& rank) {
    sw::executor<with> run(rank);
    sw::executor<without> plain(rank);
    run.initialise(7);
    run.set_input(0, numbers<double>(rows * in, 1, 0));
    run.set_input(1, numbers<double>(rows * out, 1, 5));
    run.run(env_at(1, 0.1));
    sw::save(run, folder.path());
    sw::load(plain, folder.path());
    CHECK(plain.full_parameter("line.weight") == run.full_parameter("line.weight"));
    CHECK(plain.full_state("line.weight", sw::moment::first) == run.full_state("line.weight", sw::moment::first));
    sw::save(plain, folder.path());
    sw::load(run, folder.path());
    CHECK(plain.full_parameter("line.weight") == run.full_parameter("line.weight"));
  });
}

TEST_CASE("gradient norm: of parameters cut over one axis, and data over another, it is that of one rank") {
  using by = sw::report_norm<sw::clip_norm<sw::adamw<>>>;
  const std::vector<double> one = norms_of<cut_step<1, 1, by, sw::data_parallel<dp<1>>>>();
  const auto check = [&](const std::vector<double>& many) {
    REQUIRE(many.size() == one.size());
    for (std::size_t s = 0; s < one.size(); ++s) CHECK(std::fabs(many[s] - one[s]) <= 1e-12 * one[s]);
  };
  check(norms_of<cut_step<2, 2, by, sw::data_parallel<dp<2>>>>());
  check(norms_of<cut_step<1, 4, by, sw::data_parallel<dp<1>>>>());
  check(norms_of<cut_step<2, 2, by, sw::fully_shard<dp<2>>>>());
}

TEST_CASE("gradient norm: updates that an iteration moves behind the next one's start are those without a report") {
  const auto trained = []<class Optimizer>() {
    using plain = step<double, 2, Optimizer,
                       sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<1>, sw::remove_copy_from_optimizer>,
                       sw::data_parallel<dp<2>>>;
    using moved = sw::iterated<plain, sw::iter_move_grads_and_optimizers<"all_reduce", "einsum">>;
    std::vector<double> end;
    sw::launch<sw::mesh<dp<2>>>([&](auto& rank) {
      sw::iterated_executor<moved, std::remove_reference_t<decltype(rank)>> run(rank);
      sw::executor<plain> beside(rank);
      run.main().initialise(7);
      beside.initialise(7);
      double before = 0;
      for (int s = 1; s <= 3; ++s) {
        const auto give = [&](auto& to) {
          to.set_input(0, numbers<double>(rows * in, s, 0));
          to.set_input(1, numbers<double>(rows * out, s, 5));
        };
        give(run.main());
        give(beside);
        run.run(env_at(s, 0.1), s == 3);
        beside.run(env_at(s, 0.1));
        CHECK(run.full_output() == beside.full_output());
        if constexpr (sw::detail::reports_norm<
                          Optimizer>) {  // of the update that was moved here, at last of this iteration's
          CHECK(run.gradient_norm() == (s == 3 ? beside.gradient_norm() : before));
          before = beside.gradient_norm();
        }
      }
      const std::vector<double> w = run.main().full_parameter("line.weight");
      if (rank.index() == 0) end = w;
      CHECK(w == beside.full_parameter("line.weight"));
    });
    return end;
  };
  CHECK(trained.template operator()<sw::report_norm<sw::adamw<>>>() == trained.template operator()<sw::adamw<>>());
}

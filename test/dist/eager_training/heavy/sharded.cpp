// SPDX-License-Identifier: Apache-2.0
// Eager training of a model whose parameters are stored in shards: value_and_grad and optimizer steps are the compiled train_step,
// bit for bit, and no rank holds more than its rows.
#include <running_norm.hpp>

#include <shardwise/module/eager_gradient.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace {

using namespace test::running;
namespace sw = shardwise;

template <int D, int N>
using sharded =
    sw::plan<sw::fully_shard<dp<D>, sw::average_gradients>, sw::at<"up", sw::fully_shard<dp<D>, sw::average_gradients>>>;
template <int D, int N>
using sharded_and_split =
    sw::plan<sw::fully_shard<dp<D>>, sw::at<"up", sw::fully_shard<dp<D>>>, sw::at<"up", sw::colwise<tp<N>>>,
             sw::at<"norm", split_features<tp<N>>>, sw::at<"down", sw::rowwise<tp<N>>>>;

template <int D, int N, template <int, int> class Plan, class Optimizer>
void check_steps() {
  using task = fit<double, D, 7>;
  using step =
      sw::train_step<models<dp<D>>::template net_of, task, Plan<D, N>, mesh<D, N>, Optimizer, sw::pipeline<>, double>;
  sw::launch<mesh<D, N>>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step, rank_type> program(rank);
    program.initialise(5);
    sw::eager on(rank);
    sw::bind_eager<models<dp<D>>::template net_of, Plan<D, N>, mesh<D, N>, double, rank_type> model{};
    sw::initialise(model, on, 5);
    sw::eager_optimizer<Optimizer, decltype(model)> optimizer;
    using input = sw::dtensor_of<double, sw::shape<7, 5>, mesh<D, N>, sw::on<dp<D>, sw::shard<0>>>;
    using target = sw::dtensor_of<double, sw::shape<7, 3>, mesh<D, N>, sw::on<dp<D>, sw::shard<0>>>;
    for (int s = 1; s <= 3; ++s) {
      sw::step_env env = step_numbers(s);
      env.max_norm = 0.05;
      const auto xs = numbers<double>(35, s), ts = numbers<double>(21, s + 20);
      program.set_input(0, xs);
      program.set_input(1, ts);
      program.run(env);
      on.start_step(env.seed, env.step);
      const auto [loss, gradients] =
          sw::value_and_grad(task{})(model, input::distribute(on, xs), target::distribute(on, ts));
      CHECK(loss.item() == program.loss());
      optimizer.step(model, gradients, env);
      sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
        const auto theirs = program.parameter(program.parameter_index(path));
        const auto ours = p.to_local().data;
        const bool same = ours.size() == theirs.size() &&
                          (ours.empty() || std::memcmp(ours.data(), theirs.data(), ours.size_bytes()) == 0);
        CHECK_MESSAGE(same, path, " differs in step ", s);
      });
    }
    // and back again, each rank its rows
    sw::store_parameters(model, program);
    sw::load_parameters(model, on, program);
    static_assert(decltype(model.down.weight)::sp.place[0] == sw::shard_value(0));
    static_assert(decltype(model.norm.running_mean)::sp.place[0].is_reduced());
  });
}

TEST_CASE("eager training of shards is the compiled step, bit for bit") {
  check_steps<1, 1, sharded, sw::adam<>>();
  check_steps<2, 1, sharded, sw::adam<>>();
  check_steps<4, 1, sharded, sw::clip_norm<sw::sgd<true>>>();
  check_steps<2, 2, sharded_and_split, sw::clip_norm<sw::adam<>>>();
  check_steps<3, 2, sharded_and_split, sw::sgd<>>();
}

}  // namespace

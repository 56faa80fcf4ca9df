// SPDX-License-Identifier: Apache-2.0
// A moving average of the weights, put in their place for an evaluation, and taken back.

#include <cmath>
#include <vector>

#include <shardwise/runtime/executor/weight_average.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using plan = sw::plan<sw::data_parallel<dp>>;
using step = sw::train_step<perceptron, task, plan, mesh, sw::adam<>>;
using judge = sw::with_parameters_of<sw::forward_step<perceptron, task, plan, mesh>, step>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::weight_average average(run);
    std::vector<float> by_hand = run.full_parameter("up.weight");
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 20; ++env.step) {
      run.run(env);
      average.update(run, 0.9);
      const std::vector<float> now = run.full_parameter("up.weight");
      for (std::size_t i = 0; i < now.size(); ++i) by_hand[i] = 0.9F * by_hand[i] + 0.1F * now[i];
    }

    const std::vector<float> trained = run.full_parameter("up.weight");
    average.exchange(run);
    const std::vector<float> averaged = run.full_parameter("up.weight");
    for (std::size_t i = 0; i < averaged.size(); ++i)
      check(std::fabs(averaged[i] - by_hand[i]) < 1e-5F, "the average is that of the formula");
    sw::executor<judge> test(rank, run);
    test.set_input(0, x);
    test.set_input(1, y);
    test.run({});
    check(test.loss() != run.loss(), "the average is judged");
    average.exchange(run);
    check(run.full_parameter("up.weight") == trained, "the weights are back");
  });
}

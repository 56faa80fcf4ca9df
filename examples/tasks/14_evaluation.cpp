// SPDX-License-Identifier: Apache-2.0
// Held-out data is judged between training steps, without dropout, by the weights where they lie.

#include <vector>

#include <shardwise/runtime/program/shared_parameters.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::dropout_module<1, 5>, drop), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(drop(sw::relu(up(x)))); }
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

void feed(auto& program, int first) {
  std::vector<float> x(32 * 10), y(32 * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (i * 37 + first) % 19 / 9.5F - 1, y[i] = x[i] * x[i];
  program.set_input(0, x);
  program.set_input(1, y);
}

// Losses of training, and those held out every tenth step where that is wanted.
void train(std::vector<double>& training, std::vector<double>* held_out) {
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    sw::executor<judge> test(rank, run);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 50; ++env.step) {
      feed(run, static_cast<int>(env.step));
      run.run(env);
      if (rank.index() == 0) training.push_back(run.loss());
      if (!held_out || env.step % 10 != 0) continue;
      feed(test, 1000);
      test.run({});
      const double once = test.loss();
      test.run({});
      check(once == test.loss(), "two evaluations are equal: nothing is dropped");
      if (rank.index() == 0) held_out->push_back(once);
    }
  });
}

int main() {
  std::vector<double> alone, beside, held_out;
  train(alone, nullptr);
  train(beside, &held_out);
  check(alone == beside, "training goes on as if nothing had been evaluated");
  check(held_out.size() == 5 && held_out.back() < held_out.front(), "what is held out is learned, too");
}

// SPDX-License-Identifier: Apache-2.0
// Saved while training, stopped, gone on with in a new program: the last weights are those of a run that was never stopped.

#include <filesystem>
#include <string>
#include <vector>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::dropout_module<1, 10>, drop), (sw::linear<16, 10>, down));
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
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adamw<>>;

std::vector<float> train(const std::string& folder, int last, bool resumes) {
  std::vector<float> weights;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    sw::checkpoint_position at{.seed = 7};
    if (resumes) at = sw::load(run, folder);
    else run.initialise(at.seed);
    sw::step_env env;
    env.seed = at.seed;
    env.lr = 0.01;
    env.weight_decay = 0.01;
    std::vector<float> x(32 * 10), y(32 * 10);
    for (env.step = at.step + 1; env.step <= last; ++env.step) {
      const auto row = at.integers["row"];  // where the data is, saved with the rest
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = (i * 37 + row) % 19 / 9.5F - 1, y[i] = x[i] * x[i];
      at.integers["row"] += 32;
      run.set_input(0, x);
      run.set_input(1, y);
      run.run(env);
      at.step = env.step;
      if (env.step % 5 == 0) sw::save(run, folder, at);
    }
    const std::vector<float> all = run.full_parameter("up.weight");
    if (rank.index() == 0) weights = all;
  });
  return weights;
}

int main() {
  const std::string folder = "shardwise_task_11";
  std::filesystem::remove_all(folder);
  const std::vector<float> straight = train(folder + "/straight", 20, false);
  train(folder + "/stopped", 12, false);  // the newest checkpoint is of step 10
  check(train(folder + "/stopped", 20, true) == straight, "the same bits");
  std::filesystem::remove_all(folder);
}

// SPDX-License-Identifier: Apache-2.0
// Begun on four ranks, data and tensor parallel, gone on with on two, in shards.

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};

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
using on_four =
    sw::train_step<perceptron, task,
                   sw::plan<sw::data_parallel<dp>, sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::rowwise<tp>>>,
                   sw::mesh<dp, tp>, sw::adam<>>;
using on_two = sw::train_step<perceptron, task, sw::plan<sw::fully_shard<dp>>, sw::mesh<dp>, sw::adam<>>;

template <class Step>
double train(const std::string& folder, int last) {  // the last loss; the folder's newest checkpoint is gone on with
  double loss = 0;
  const bool resumes = std::filesystem::exists(folder);
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank);
    sw::checkpoint_position at{.seed = 7};
    if (resumes) at = sw::load(run, folder);
    else run.initialise(at.seed);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = at.step + 1; env.step <= last; ++env.step) run.run(env);
    at.step = last;
    sw::save(run, folder, at);
    if (rank.index() == 0) loss = run.loss();
  });
  return loss;
}

int main() {
  const std::string folder = "shardwise_task_12";
  std::filesystem::remove_all(folder);
  train<on_four>(folder + "/stays", 20);
  const double stayed = train<on_four>(folder + "/stays", 30);
  train<on_four>(folder + "/moves", 20);
  const double moved = train<on_two>(folder + "/moves", 30);
  check(std::fabs(stayed - moved) < 1e-6, "two ranks lose what four would have lost");
  std::filesystem::remove_all(folder);
}

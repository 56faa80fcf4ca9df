// SPDX-License-Identifier: Apache-2.0
// Saved, stopped, and gone on with: on the same mesh with the same bits, on another mesh and plan with the same losses but for rounding.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct all : sw::axis<4> {};

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
template <class Axis>  // the one that splits the batch
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<Axis, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};

using tensor_parallel =
    sw::train_step<mlp, task<dp>,
                   sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>,
                   sw::mesh<dp, tp>, sw::adam<>>;
using in_shards = sw::train_step<mlp, task<all>, sw::plan<sw::fully_shard<all>>, sw::mesh<all>, sw::adam<>>;

// Steps up to `last`, from the newest checkpoint in `folder` if there is one to go on from. Saves every five. Returns the last loss.
template <class Step>
double train(const std::string& folder, bool resumes, int last) {
  double loss = 0;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank);
    sw::checkpoint_position at{.seed = 7};  // where a run is: its step, its seed, and numbers of its own
    if (resumes) at = sw::load(run, folder);
    else run.initialise(at.seed);
    std::vector<float> x(32 * 10), y(32 * 10);
    sw::step_env env;
    env.seed = at.seed;
    env.lr = 0.01;
    for (env.step = at.step + 1; env.step <= last; ++env.step) {
      const auto batch = at.integers["batch"]++;  // the data's position is saved, too
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>((static_cast<std::int64_t>(i) * 37 + batch) % 19) / 9.5F - 1;
        y[i] = x[i] * x[i];
      }
      run.set_input(0, x);
      run.set_input(1, y);
      run.run(env);
      at.step = env.step;
      if (env.step % 5 == 0) sw::save(run, folder, at, {.keep_last = 2});
    }
    if (rank.index() == 0) loss = static_cast<double>(run.loss());
  });
  return loss;
}

int main() {
  const auto scratch = std::filesystem::temp_directory_path() / ("shardwise_checkpoints_" + std::to_string(::getpid()));
  const std::string once = scratch / "once", stopped = scratch / "stopped", moved = scratch / "moved";

  const double straight = train<tensor_parallel>(once, false, 20);
  train<tensor_parallel>(stopped, false, 12);  // stops behind step 12; its newest checkpoint is that of step 10
  std::filesystem::copy(stopped, moved, std::filesystem::copy_options::recursive);
  const double resumed = train<tensor_parallel>(stopped, true, 20);
  const double elsewhere = train<in_shards>(moved, true, 20);  // 2 x 2 tensor parallel -> 4 ranks in shards

  std::printf("loss of step 20: %.6f\n", straight);
  std::printf("resumed on the same mesh: %s\n", resumed == straight ? "the same bits" : "other bits");
  std::printf("resumed in shards over 4 ranks: %s\n",
              std::fabs(elsewhere - straight) < 1e-6 ? "the same but for rounding" : "other");
  for (const auto& entry : std::filesystem::directory_iterator(stopped))
    if (entry.path().extension() == ".json") std::printf("%s names the checkpoints\n", entry.path().filename().c_str());
  std::filesystem::remove_all(scratch);
}

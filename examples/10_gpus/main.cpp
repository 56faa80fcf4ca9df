// SPDX-License-Identifier: Apache-2.0
// One program for host threads and for GPUs: this source as it is, or by main.cu beside it, which nvcc compiles. What differs is the
// step's backend and the launch.

#include <cstdio>
#include <type_traits>
#include <vector>

#ifndef ON_GPUS
#include <shardwise/shardwise.hpp>
#endif
namespace sw = shardwise;

#ifdef ON_GPUS
using backend = sw::cuda_backend;
#else
using backend = sw::host_backend;
#endif

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;  // as threads of one process, rank r takes GPU r

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<16, 64>, up), (sw::linear<64, 16>, down));
  constexpr auto forward(const auto& x) const { return down(sw::gelu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 16>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::rowwise<tp>>>;
using step = sw::train_step<mlp, task, plan, mesh, sw::adam<>, sw::pipeline<>, float, backend>;

// One rank's part, whatever it computes on. All memory is taken when the executor is made.
template <class Rank>
void train(Rank& rank) {
  sw::executor<step, Rank> run(rank);
  run.initialise(/*seed*/ 1);  // the same values on every backend and mesh
  std::vector<float> x(32 * 16), y(32 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 37 % 19) / 9.5F - 1;
    y[i] = x[i] * x[i];
  }
  sw::step_env env;
  env.lr = 0.01;
  for (env.step = 1; env.step <= 20; ++env.step) {
    run.set_input(0, x);  // on a GPU the copy is queued
    run.set_input(1, y);
    run.run(env);  // on a GPU: one launch of the whole step, collectives included, which is queued
    // on a GPU loss() waits: ask as seldom as you need it
    if (env.step % 10 == 0 && rank.index() == 0)
      std::printf("step %d  loss %.4f\n", static_cast<int>(env.step), static_cast<double>(run.loss()));
  }
}

int main(int argc, char** argv) {
#ifdef ON_GPUS
  return sw::launch_cuda<mesh>(argc, argv, [](auto& rank) { train(rank); });
#else
  return sw::launch<mesh>(argc, argv, [](auto& rank) { train(rank); });
#endif
}

// SPDX-License-Identifier: Apache-2.0
// What each process of the example runs: one step after the other on one rank of the mesh.
#pragma once

#include <vector>

#include <shardwise/core.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

namespace program {

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<16, 64>, up), (sw::linear<64, 16>, down));
  constexpr auto forward(const auto& x) const { return down(sw::gelu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<30, 16>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto error = model(x) - x;
    return sw::mean(error * error);
  }
};
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::rowwise<tp>>>;
template <class Backend>
using step = sw::train_step<mlp, task, plan, mesh, sw::adam<>, sw::pipeline<>, float, Backend>;

// The loss of the last of `steps` steps. Every process is given the whole batch, the same in all, and takes its own rows.
template <class Backend = sw::host_backend, class Rank>
double train(Rank& rank, int steps) {
  sw::executor<step<Backend>, Rank> run(rank);
  run.initialise(/*seed*/ 1);
  std::vector<float> x(30 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 19) / 9.5F - 1;
  run.set_input(0, x);
  sw::step_env env;
  env.lr = 0.01;
  for (env.step = 1; env.step <= steps; ++env.step) run.run(env);
  return static_cast<double>(run.loss());
}

}  // namespace program

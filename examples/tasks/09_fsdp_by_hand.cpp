// SPDX-License-Identifier: Apache-2.0
// FSDP by hand: weights in shards, gathered before use, gradients reduce-scattered, shards updated; beside fully_shard in a plan.

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<4> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 32, width = 12, hidden = 20;
using batch = sw::dtensor_of<float, sw::shape<rows, width>, mesh, sw::on<dp, sw::shard<0>>>;
template <int Out, int In>
using in_rows = sw::dtensor_of<float, sw::shape<Out, In>, mesh, sw::on<dp, sw::shard<0>>>;  // of a weight

struct square_error {  // of what are whole weights here
  constexpr auto operator()(const auto& up, const auto& down, const auto& x, const auto& y) const {
    const auto error = sw::linear_product(sw::relu(sw::linear_product(x, up)), down) - y;
    return sw::mean(error * error);
  }
};

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, hidden, sw::unbound, false>, up),
                    (sw::linear<hidden, width, sw::unbound, false>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_like<batch>, sw::input_like<batch>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using by_plan = sw::train_step<perceptron, task, sw::plan<sw::fully_shard<dp>>, mesh, sw::sgd<>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    std::vector<float> xs(rows * width), ys(rows * width);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = i * 37 % 19 / 9.5F - 1, ys[i] = xs[i] * xs[i];
    const double lr = 0.5;

    sw::executor<by_plan> run(rank);
    run.initialise(/*seed*/ 1);
    const std::vector<float> up0 = run.full_parameter("up.weight"), down0 = run.full_parameter("down.weight");
    sw::step_env env;
    env.lr = lr;
    for (env.step = 1; env.step <= 10; ++env.step) {
      run.set_input(0, xs);
      run.set_input(1, ys);
      run.run(env);
    }

    const sw::eager on(rank);
    const auto x = batch::distribute(on, xs), y = batch::distribute(on, ys);
    auto up = in_rows<hidden, width>::distribute(on, up0);  // each rank keeps five of the twenty rows
    auto down = in_rows<width, hidden>::distribute(on, down0);
    for (int s = 1; s <= 10; ++s) {
      const auto whole_up = sw::redistribute<dp, sw::reduced>(up);  // all-gather
      const auto whole_down = sw::redistribute<dp, sw::reduced>(down);
      const auto [loss, d_up, d_down] = sw::value_and_grad<square_error, 0, 1>(whole_up, whole_down, x, y);
      sw::add_(up, sw::redistribute<dp, sw::shard<0>>(d_up) * -lr);  // reduce-scatter, and this rank's rows
      sw::add_(down, sw::redistribute<dp, sw::shard<0>>(d_down) * -lr);
    }
    const auto all = up.full_tensor();
    const auto mine = all.to_local();
    const std::vector<float> theirs = run.full_parameter("up.weight");
    check(mine.size() == theirs.size() && theirs != up0, "weights have moved");
    for (std::size_t i = 0; i < theirs.size(); ++i)
      check(std::fabs(mine[i] - theirs[i]) < 1e-5F, "weights are those of the plan");
  });
}

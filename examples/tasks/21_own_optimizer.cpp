// SPDX-License-Identifier: Apache-2.0
// An optimizer written by hand, with tensors that compute at once: Lion, beside the library's.

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 32, width = 10;
using batch = sw::dtensor_of<float, sw::shape<rows, width>, mesh, sw::on<dp, sw::shard<0>>>;
using weight = sw::dtensor_of<float, sw::shape<width, width>, mesh, sw::on<dp, sw::reduced>>;

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, width, sw::unbound, false>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_like<batch>, sw::input_like<batch>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
struct square_error {
  constexpr auto operator()(const auto& w, const auto& x, const auto& y) const {
    const auto error = sw::linear_product(x, w) - y;
    return sw::mean(error * error);
  }
};
using theirs = sw::train_step<layer, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::lion<>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    std::vector<float> xs(rows * width), ys(rows * width);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = i * 37 % 19 / 9.5F - 1, ys[i] = xs[i] * xs[i];
    sw::step_env env;
    env.lr = 0.01, env.beta1 = 0.9, env.beta2 = 0.99, env.weight_decay = 0.1;

    sw::executor<theirs> run(rank);
    run.initialise(/*seed*/ 1);
    const sw::eager on(rank);
    const auto x = batch::distribute(on, xs), y = batch::distribute(on, ys);
    auto w = weight::distribute(on, run.full_parameter("fc.weight"));
    auto m = sw::zeros_like(w);
    for (env.step = 1; env.step <= 10; ++env.step) {
      run.set_input(0, xs);
      run.set_input(1, ys);
      run.run(env);

      const auto [loss, partial] = sw::value_and_grad<square_error, 0>(w, x, y);
      const auto g = sw::redistribute<dp, sw::reduced>(partial);  // summed over the ranks
      const auto direction = sw::sign(m * env.beta1 + g * (1 - env.beta1));
      sw::copy_(m, m * env.beta2 + g * (1 - env.beta2));
      sw::copy_(w, w * (1 - env.lr * env.weight_decay) - direction * env.lr);
    }
    const auto block = w.to_local();
    for (std::size_t i = 0; i < block.size(); ++i)
      check(std::fabs(block[i] - run.parameter("fc.weight")[i]) < 1e-5F, "the weights are those of the library's Lion");
  });
}

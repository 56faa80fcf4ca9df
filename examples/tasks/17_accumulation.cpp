// SPDX-License-Identifier: Apache-2.0
// One update of four small batches, in the memory of one, beside the update of one large batch.

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 64;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 64>, up), (sw::linear<64, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<rows, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
template <class... Entries>
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh, sw::adam<>>;
using whole = step<>;
using in_four = step<sw::accumulate<4>>;
static_assert(in_four::peak_bytes < whole::peak_bytes && in_four::comm_bytes<dp> == whole::comm_bytes<dp>);

template <class Step>
std::vector<float> weights() {
  std::vector<float> w;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(rows * 10), y(rows * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 10; ++env.step) run.run(env);
    const std::vector<float> all = run.full_parameter("up.weight");
    if (rank.index() == 0) w = all;
  });
  return w;
}

int main() {
  const std::vector<float> a = weights<whole>(), b = weights<in_four>();
  for (std::size_t i = 0; i < a.size(); ++i)
    check(std::fabs(a[i] - b[i]) < 1e-4F, "the weights are those of one large batch");
}

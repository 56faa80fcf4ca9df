// SPDX-License-Identifier: Apache-2.0
// A perceptron, data-parallel over four ranks, each of which brings its own rows.

#include <cstdint>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<4> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<2, 32>, in), (sw::linear<32, 2>, out));
  constexpr auto forward(const auto& x) const { return out(sw::relu(in(x))); }
};
struct task {
  using points = sw::input_tensor<float, sw::shape<64, 2>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<64>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;

int main() {
  std::vector<std::vector<float>> weights(mesh::size);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    sw::step_env env;
    env.lr = 0.02;
    double first = 0, last = 0;
    for (env.step = 1; env.step <= 200; ++env.step) {
      const auto x = run.input<float>(0);  // this rank's 16 rows, to be filled in place
      const auto label = run.input<std::int32_t>(1);
      for (std::size_t i = 0; i < label.size(); ++i) {
        const std::size_t k = (env.step * 16 + i) * 4 + rank.index();
        x[2 * i] = k * 37 % 101 / 50.F - 1;
        x[2 * i + 1] = k * 61 % 103 / 51.F - 1;
        label[i] = x[2 * i] * x[2 * i + 1] > 0;
      }
      run.run(env);
      last = run.loss();
      if (env.step == 1) first = last;
    }
    check(last < first / 10, "the loss has fallen to a tenth");
    const auto mine = run.parameter("in.weight");
    weights[rank.index()].assign(mine.begin(), mine.end());
  });
  for (const auto& w : weights) check(w == weights[0], "all ranks hold the same weights");
}

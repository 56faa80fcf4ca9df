// SPDX-License-Identifier: Apache-2.0
// The smallest program that trains: a line through points, on two ranks.

#include <vector>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct line : sw::module<line<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<1, 1>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};
struct task {
  using points = sw::input_tensor<float, sw::shape<8, 1>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, points>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using step = sw::train_step<line, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::sgd<>>;

int main() {
  bool near = false;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    run.set_input(0, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
    run.set_input(1, std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15});  // 2 x + 1
    sw::step_env env;
    env.lr = 0.03;
    for (env.step = 1; env.step <= 500; ++env.step) run.run(env);
    const float slope = run.full_parameter("fc.weight")[0];
    if (rank.index() == 0) near = slope > 1.99F && slope < 2.01F;
  });
  return near ? 0 : 1;
}

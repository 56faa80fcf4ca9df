// SPDX-License-Identifier: Apache-2.0
// A rate that warms up and falls by a cosine; gradients whose norm is clipped, and is reported.

#include <cmath>
#include <numbers>
#include <vector>

#include <shardwise/module/schedules.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 4, sw::unbound, false>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<8, 6>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)) * 100.; }
};
using step = sw::train_step<layer, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::report_norm<sw::clip_norm<sw::sgd<>>>>;

inline constexpr auto rates = sw::schedule_of<sw::warm_up(10, sw::cosine_schedule{.from = 0.1, .to = 0.01, .steps = 40})>;

int main() {
  check(rates.at(5) < rates.at(9) && rates.at(10) == 0.1, "it warms up");
  const double half_way = 0.01 + 0.09 * (1 + std::cos(std::numbers::pi / 2)) / 2;
  check(std::fabs(rates.at(30) - half_way) < 1e-12 && std::fabs(rates.at(50) - 0.01) < 1e-12, "and falls by a cosine");
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    run.set_input(0, std::vector<float>(8 * 6, 1));
    sw::step_env env;
    env.max_norm = 1;
    for (env.step = 1; env.step <= 50; ++env.step) {
      env.lr = rates.at(env.step - 1);
      const std::vector<float> before = run.full_parameter("fc.weight");
      run.run(env);
      const std::vector<float> after = run.full_parameter("fc.weight");
      double moved = 0;
      for (std::size_t i = 0; i < after.size(); ++i) moved += std::pow(1. * after[i] - before[i], 2);
      check(std::fabs(run.gradient_norm() - 3919.18) < 1, "the norm is that before clipping");
      check(std::fabs(std::sqrt(moved) - env.lr) < 1e-5, "a step goes as far as rate and clipping allow");
    }
  });
}

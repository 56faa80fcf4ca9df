// SPDX-License-Identifier: Apache-2.0
// The same step with fewer kernels: what follows a product becomes part of it.

#include <cmath>
#include <vector>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, gate), (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::silu(gate(x)) * up(x)); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
template <class... Passes>
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>>;
using plain = step<>;
using fused = step<sw::merge_products, sw::fuse_kernels>;

template <class Step>
std::vector<double> losses(std::size_t& calls) {
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 20; ++env.step) {
      run.run(env);
      if (rank.index() == 0) all.push_back(run.loss());
    }
    if (rank.index() == 0) calls = run.call_count();
  });
  return all;
}

int main() {
  std::size_t before = 0, after = 0;
  const std::vector<double> a = losses<plain>(before), b = losses<fused>(after);
  check(after < before, "there are fewer");
  for (std::size_t s = 0; s < a.size(); ++s) check(std::fabs(a[s] - b[s]) < 1e-5, "the losses agree");
}

// SPDX-License-Identifier: Apache-2.0
// Computed in bf16, weights and moments kept in float, beside the same in float.

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 32;

template <class Bound = sw::unbound>
struct classifier : sw::module<classifier<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 32>, body), (sw::layer_norm_module<32>, norm), (sw::linear<32, 4>, head));
  constexpr auto forward(const auto& x) const { return head(norm(sw::relu(body(x)))); }
};
struct task {
  using points = sw::input_tensor<float, sw::shape<rows, 8>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};
template <class... Entries>
using step = sw::train_step<classifier, task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh, sw::adamw<>>;
using high = step<>;
using low = step<sw::mixed<sw::bf16>, sw::at<"head", sw::mixed<float>>>;
static_assert(std::is_same_v<low::element, float>);  // weights and moments

template <class Step>
std::vector<double> losses() {
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(rows * 8);
    std::vector<std::int32_t> label(rows);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 101 / 50.F - 1;
    for (int i = 0; i < rows; ++i) label[i] = i % 4;
    run.set_input(0, x);
    run.set_input(1, label);
    sw::step_env env;
    env.lr = 0.01;
    env.weight_decay = 0.01;
    for (env.step = 1; env.step <= 40; ++env.step) {
      run.run(env);
      if (rank.index() == 0) all.push_back(run.loss());
    }
  });
  return all;
}

int main() {
  const std::vector<double> a = losses<high>(), b = losses<low>();
  check(a != b && a.back() < a.front() / 2, "it learns, and bf16 is not float");
  for (std::size_t s = 0; s < a.size(); ++s)
    check(std::fabs(a[s] - b[s]) < 0.02 * a.front(), "losses are near those of float");
}

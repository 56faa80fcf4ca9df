// SPDX-License-Identifier: Apache-2.0
// A perceptron whose hidden features two ranks share, beside the whole one; what a step sends is known before it runs.

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct tp : sw::axis<2> {};
struct one : sw::axis<1> {};

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using whole = sw::train_step<perceptron, task, sw::plan<>, sw::mesh<one>>;
using split =
    sw::train_step<perceptron, task, sw::plan<sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::rowwise<tp>>>, sw::mesh<tp>>;
static_assert(split::comm_bytes_of<tp>(sw::transition::all_reduce) ==
              32 * 10 * 4);  // of the forward pass: x needs no gradient
static_assert(split::comm_bytes<tp> == split::comm_bytes_of<tp>(sw::transition::all_reduce) &&
              split::peak_bytes < whole::peak_bytes);

template <class Step>
std::vector<double> losses() {
  std::vector<double> all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
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
  });
  return all;
}

int main() {
  const std::vector<double> a = losses<whole>(), b = losses<split>();
  check(a.back() < a.front() / 2, "it learns");
  for (std::size_t s = 0; s < a.size(); ++s) check(std::fabs(a[s] - b[s]) < 1e-5, "both lose the same");
}

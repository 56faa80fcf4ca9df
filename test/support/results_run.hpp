// SPDX-License-Identifier: Apache-2.0
// Train steps of small models on (12, 6) doubles, for tests of operations with several results: their losses, and how far apart two
// lists of numbers are.
#pragma once

#include <cmath>
#include <cstddef>
#include <shardwise/shardwise.hpp>
#include <type_traits>
#include <vector>

namespace test::results {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int T>
using mesh = sw::mesh<dp<D>, tp<T>>;

inline std::vector<double> some(std::size_t n, double salt) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 1.5 * std::sin(1.3 * static_cast<double>(i) + salt);
  return v;
}
inline double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    worst = d <= worst ? worst : d;
  }
  return worst;
}

template <class Batch>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<12, 6>, sw::on<Batch, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::mean(y * y);
  }
};
template <class Step>
std::vector<double> train() {
  std::vector<double> after;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(
        rank, sw::executor_checks::poison | sw::executor_checks::finite);
    run.initialise(1);
    sw::step_env env;
    env.lr = 0.01;
    std::vector<double> losses;
    for (env.step = 1; env.step <= 4; ++env.step) {
      run.set_input(0, some(12 * 6, 2));
      run.run(env);
      losses.push_back(run.loss());
    }
    if (rank.index() == 0) after = losses;
  });
  return after;
}

}  // namespace test::results

// SPDX-License-Identifier: Apache-2.0
// Train steps of small models on (12, 6) doubles, for tests of operations with several results: their losses, and how far apart two
// lists of numbers are.
#pragma once

#include <cstddef>
#include <figures.hpp>
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

using figures::apart;
using figures::some;

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

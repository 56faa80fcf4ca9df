// SPDX-License-Identifier: Apache-2.0
// Programs with another's parameters on a GPU, queued between its runs and not waited for: each sees what the run before it has made, and
// neither a later run nor an average that takes the weights' place meanwhile.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/runtime/executor/weight_average.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>
#include <vector>

namespace device_shared_parameters {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
inline constexpr int width = 256, rows = 64;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, width>, up), (sw::linear<width, width>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
struct fit {
  using block = sw::input_tensor<float, sw::shape<rows, width>>;
  using inputs = sw::inputs<block, block>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};
using step = sw::train_step<net, fit, sw::plan<>, mesh, sw::sgd<>, sw::pipeline<>, float, sw::cuda_backend>;
using judge =
    sw::with_parameters_of<sw::forward_step<net, fit, sw::plan<>, mesh, sw::pipeline<>, float, sw::cuda_backend>, step>;

template <class Executor>
void feed(Executor& run, int seed) {
  std::vector<float> x(rows * width);
  for (int of = 0; of < 2; ++of) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i) + seed + of));
    run.set_input(of, x);
  }
}

// What is judged and learned in 20 rounds, in which the host waits for each run, or for none.
template <class Rank>
std::vector<float> rounds(Rank& rank, bool waits) {
  sw::device_options how;
  how.products.choice = sw::product_choice::deterministic;  // executors that are compared take the same
  sw::executor<step, Rank> run(rank, how);
  run.initialise(7);
  sw::executor<judge, Rank> test(rank, run, how);
  sw::weight_average average(run);
  feed(run, 1);
  feed(test, 9);
  std::vector<float> all;
  sw::step_env env;
  env.lr = 0.5;
  for (int round = 0; round < 20; ++round) {
    for (int k = 0; k < 3; ++k) {
      ++env.step;
      run.run(env);
      if (waits) run.synchronize();
    }
    if (round % 2 == 1) average.update(run, 0.5);
    if (round % 2 == 1) average.exchange(run);
    test.run({});
    if (waits) test.synchronize();
    if (round % 2 == 1) average.exchange(run);
    ++env.step;
    run.run(env);
    if (waits) run.synchronize();
    all.push_back(test.loss());
    all.push_back(run.loss());
  }
  return all;
}

TEST_CASE("what borrows parameters runs between its owner's runs, though nobody waits") {
  if (!test::place::has(1)) return;
  sw::launch_cuda<mesh>([](auto& rank) {
    const std::vector<float> want = rounds(rank, true);
    for (int i = 0; i < 5; ++i) CHECK(rounds(rank, false) == want);
    CHECK(want.front() != want.back());
  });
}

}  // namespace device_shared_parameters

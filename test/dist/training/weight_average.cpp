// SPDX-License-Identifier: Apache-2.0
// weight_average against the averages of whole parameters that were read after each step, under plans that cut them, on 1 to 4 ranks;
// training goes on to the bit after an evaluation of the average.
#include <figures.hpp>

#include <shardwise/runtime/executor/weight_average.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using numbers = std::vector<double>;

template <int N>
struct line : sw::axis<N> {};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 5>, one), (sw::linear<5, 4>, two));
  constexpr auto forward(const auto& x) const { return two(sw::tanh(one(x))); }
};
template <int N>
struct task {
  using batch = sw::input_tensor<double, sw::shape<12, 6>, sw::on<line<N>, sw::shard<0>>>;
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& net, const auto& x) const {
    const auto y = net(x);
    return sw::mean(y * y);
  }
};
const char* const names[] = {"one.weight", "one.bias", "two.weight", "two.bias"};

template <int N, class Plan>
numbers run_all(bool evaluate) {
  using mesh = sw::mesh<line<N>>;
  using step = sw::train_step<model, task<N>, Plan, mesh, sw::adam<>, sw::pipeline<>, double>;
  using score = sw::forward_step<model, task<N>, Plan, mesh, sw::pipeline<>, double>;
  numbers all;
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step, rank_type> run(rank);
    sw::executor<score, rank_type> judge(rank);
    CHECK_THROWS_WITH((void)sw::weight_average{run}, doctest::Contains("has no value"));
    run.initialise(3);
    sw::weight_average average(run);
    std::vector<numbers> want;
    for (const char* name : names) want.push_back(run.full_parameter(name));
    sw::step_env env;
    env.lr = 0.05;
    const numbers x = figures::some(72, 0);
    run.set_input(0, x);
    for (env.step = 1; env.step <= 5; ++env.step) {
      run.run(env);
      average.update(run, 0.75);
      for (std::size_t k = 0; k < 4; ++k) {
        const numbers now = run.full_parameter(names[k]);
        for (std::size_t i = 0; i < now.size(); ++i) want[k][i] = 0.75 * want[k][i] + 0.25 * now[i];
      }
      if (!evaluate || env.step % 2 == 0) continue;
      average.exchange(run);
      judge.copy_parameters(run);
      for (std::size_t k = 0; k < 4; ++k) CHECK(figures::apart(run.full_parameter(names[k]), want[k]) < 1e-15);
      average.exchange(run);
      judge.set_input(0, x);
      judge.run(env);
      for (std::size_t k = 0; k < 4; ++k) CHECK(judge.full_parameter(names[k]) != run.full_parameter(names[k]));
    }
    for (const double decay : {-0.5, 1.5})
      CHECK_THROWS_WITH(average.update(run, decay), doctest::Contains("; give one from 0, the weights as they are"));
    average.update(run, 0);  // the weights, in either place
    for (int k = 0; k < 4; ++k) want[static_cast<std::size_t>(k)] = run.full_parameter(names[k]);
    average.exchange(run);
    for (int k = 0; k < 4; ++k) CHECK(run.full_parameter(names[k]) == want[static_cast<std::size_t>(k)]);
    numbers mine;
    for (const char* name : names)
      for (const double v : run.full_parameter(name)) mine.push_back(v);
    if (rank.index() == 0) all = mine;
  });
  return all;
}
template <int N, class Plan>
void check() {
  const numbers with = run_all<N, Plan>(true), without = run_all<N, Plan>(false);
  CHECK(with.size() == 59);
  CHECK(with == without);
}

TEST_CASE("weight_average: of whole parameters and of shards, on 1 to 4 ranks") {
  check<1, sw::plan<sw::data_parallel<line<1>>>>();
  check<2, sw::plan<sw::data_parallel<line<2>>>>();
  check<3, sw::plan<sw::fully_shard<line<3>>>>();  // of 5 and 4 rows: uneven, and a rank without any
  check<4, sw::plan<sw::fully_shard<line<4>>>>();
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// One program for batches of up to 64 rows, beside programs of one size each.

#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 4>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
template <class Rows>
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, Rows, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
template <class Rows>
using program = sw::executor<sw::forward_step<perceptron, task<Rows>, sw::plan<sw::data_parallel<dp>>, mesh>>;

std::vector<float> numbers(int rows) {
  std::vector<float> x(rows * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1;
  return x;
}
std::vector<float> result(auto& run, int rows) {
  run.set_input(0, numbers(rows));
  run.run({});
  return run.full_output();
}
template <int Rows>
void compare(auto& rank, auto& any) {
  program<sw::shape<Rows, 10>> fixed(rank);
  fixed.initialise(/*seed*/ 1);
  any.resize(Rows);
  check(result(any, Rows) == result(fixed, Rows), "the rows of a program of that size");
}

int main() {
  sw::launch<mesh>([](auto& rank) {
    program<sw::shape<sw::dyn<64>, 10>> any(rank);
    any.initialise(/*seed*/ 1);
    compare<64>(rank, any);
    compare<7>(rank, any);
    compare<1>(rank, any);
  });
}

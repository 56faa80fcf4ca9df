// SPDX-License-Identifier: Apache-2.0
// A GRU from its formulas, run over the steps of a sequence; at the end it tells the sign of the first element.

#include <cstdint>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 32, steps = 8, features = 2, hidden = 16;

template <class Bound = sw::unbound>
struct gru : sw::module<gru<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<features, 3 * hidden>, from_x), (sw::linear<hidden, 3 * hidden>, from_h),
                    (sw::linear<hidden, 2>, head));
  constexpr auto cell(const auto& x, const auto& h) const {
    const auto [xr, xz, xn] = sw::chunk<1, 3>(from_x(x));
    const auto [hr, hz, hn] = sw::chunk<1, 3>(from_h(h));
    const auto r = sw::sigmoid(xr + hr), z = sw::sigmoid(xz + hz);
    const auto n = sw::tanh(xn + r * hn);
    return n + z * (h - n);
  }
  template <int T>
  constexpr auto from(const auto& x, const auto& h) const {  // steps are constants, so the loop is one of the compiler
    if constexpr (T == steps) return h;
    else return from<T + 1>(x, cell(sw::select<1, T>(x), h));
  }
  constexpr auto forward(const auto& x) const {  // (rows, steps, features)
    return head(from<0>(x, sw::zeros_like(sw::narrow<1, 0, hidden>(from_x(sw::select<1, 0>(x))))));
  }
};
struct task {
  using sequences = sw::input_tensor<float, sw::shape<rows, steps, features>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<sequences, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};
using step = sw::train_step<gru, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(rows * steps * features);
    std::vector<std::int32_t> label(rows);
    sw::step_env env;
    env.lr = 0.02;
    for (env.step = 1; env.step <= 150; ++env.step) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = ((env.step * x.size() + i) * 7919 % 199) / 99.F - 1;
      for (int i = 0; i < rows; ++i) label[i] = x[i * steps * features] > 0;
      run.set_input(0, x);
      run.set_input(1, label);
      run.run(env);
    }
    check(run.loss() < 0.2F, "the first element's sign is kept to the end");
  });
}

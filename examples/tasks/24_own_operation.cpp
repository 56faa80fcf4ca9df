// SPDX-License-Identifier: Apache-2.0
// An operation that the library lacks, mish(x) = x tanh(log(1 + exp x)), with its gradient, in a model that two ranks share.

#include <cstdint>
#include <vector>

#include <shardwise/laws/cases.hpp>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

inline constexpr sw::custom_operation mish_back{// of a cotangent, in which it is linear, and of x
                                                .name = "mish_back",
                                                .operands = 2,
                                                .record = sw::operations::pointwise(sw::linearity::first),
                                                .adjoint = &sw::autodiff::unknown};
inline constexpr sw::autodiff::adjoint_rule mish_adjoint =
    sw::autodiff::pulled<1>([](sw::autodiff::pullback& p) { p.give(0, p.make(mish_back, {}, 0, p.dy, p.n.in[0])); });
inline constexpr sw::custom_operation mish{
    .name = "mish", .operands = 1, .record = sw::operations::pointwise(sw::linearity::none), .adjoint = &mish_adjoint};

// tanh(log(1 + e)) = (s - 1) / (s + 1) with s = (1 + e)^2
template <>
struct shardwise::formula<mish> {
  template <class m, class T>
  static constexpr T value(T x) {
    const T e = m::exp(x), s = (T(1) + e) * (T(1) + e);
    return x * (s - T(1)) / (s + T(1));
  }
};
template <>
struct shardwise::formula<mish_back> {
  template <class m, class T>
  static constexpr T value(T dy, T x) {
    const T e = m::exp(x), s = (T(1) + e) * (T(1) + e);
    return dy * ((s - T(1)) / (s + T(1)) + x * T(4) * e * (T(1) + e) / ((s + T(1)) * (s + T(1))));
  }
};
static_assert(sw::laws::holds<sw::laws::customs<mish, mish_back>, sw::shape<5, 3>> > 0);

struct applied {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::call<mish>(x)); }
};

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::call<mish>(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using step =
    sw::train_step<perceptron, task, sw::plan<sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::rowwise<tp>>>, mesh>;

int main() {
  check(sw::gradcheck<applied, sw::shape<4, 3>>() == 12, "the gradient agrees with differences");
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.01;
    double first = 0;
    for (env.step = 1; env.step <= 40; ++env.step) {
      run.run(env);
      if (env.step == 1) first = run.loss();
    }
    check(run.loss() < first / 2, "the model with it learns, its features split");
  });
}

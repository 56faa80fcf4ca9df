// SPDX-License-Identifier: Apache-2.0
// Operations of one's own: a gated activation, silu(gate) * up, whose adjoint is two operations, each one pass. Nothing of the library
// is changed: shape, rules of placements, cost, gradients, kernels for hosts and GPUs, proof and passes follow from what stands here.
#pragma once

#include <shardwise/shardwise.hpp>

namespace gated {

namespace sw = shardwise;

// The adjoint's operations: linear in the cotangent, which is their first operand, so they take partial ones, too.
inline constexpr sw::custom_operation swiglu_gate{.name = "swiglu_gate",
                                                  .operands = 3,
                                                  .record = sw::operations::pointwise(sw::linearity::first),
                                                  .adjoint = &sw::autodiff::unknown};
inline constexpr sw::custom_operation swiglu_up{.name = "swiglu_up",
                                                .operands = 2,
                                                .record = sw::operations::pointwise(sw::linearity::first),
                                                .adjoint = &sw::autodiff::unknown};

// Each operand that wants a gradient gets one, summed over what it was broadcast along.
inline constexpr sw::autodiff::adjoint_rule swiglu_adjoint = sw::autodiff::pulled<2>([](sw::autodiff::pullback& p) {
  const int gate = p.n.in[0], up = p.n.in[1];
  if (p.wants(0)) p.give_summed(0, p.make(swiglu_gate, {}, 0, p.dy, gate, up));
  if (p.wants(1)) p.give_summed(1, p.make(swiglu_up, {}, 0, p.dy, gate));
});

inline constexpr sw::custom_operation swiglu{
    .name = "swiglu", .operands = 2, .record = sw::operations::pointwise(sw::linearity::none), .adjoint = &swiglu_adjoint};

}  // namespace gated

// One formula for all devices; m has their functions.
template <>
struct shardwise::formula<gated::swiglu> {
  template <class m, class T>
  static constexpr T value(T gate, T up) {
    return gate / (T(1) + m::exp(T(0) - gate)) * up;
  }
};
template <>
struct shardwise::formula<gated::swiglu_gate> {
  template <class m, class T>
  static constexpr T value(T dy, T gate, T up) {
    const T s = T(1) / (T(1) + m::exp(T(0) - gate));
    return dy * up * s * (T(1) + gate * (T(1) - s));
  }
};
template <>
struct shardwise::formula<gated::swiglu_up> {
  template <class m, class T>
  static constexpr T value(T dy, T gate) {
    return dy * gate / (T(1) + m::exp(T(0) - gate));
  }
};

namespace gated {

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<12, 32>, gate), (sw::linear<12, 32>, up), (sw::linear<32, 12>, down));
  constexpr auto forward(const auto& x) const { return down(sw::call<swiglu>(gate(x), up(x))); }
};
template <class Dp, class Tp>
using plan = sw::plan<sw::data_parallel<Dp>, sw::at<"gate", sw::colwise<Tp>>, sw::at<"up", sw::colwise<Tp>>,
                      sw::at<"down", sw::rowwise<Tp>>>;

template <class T, class Dp>
struct task {
  using batch = sw::input_tensor<T, sw::shape<16, 12>, sw::on<Dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};

// The loss of `steps` steps on one and the same batch, by the executor of whatever rank.
template <class Step, class Rank>
double train(Rank& rank, int steps) {
  sw::executor<Step, Rank> run(rank);
  run.initialise(/*seed*/ 1);
  std::vector<typename Step::element> x(16 * 12), y(16 * 12);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<typename Step::element>(static_cast<int>(i * 37 % 19) - 9) / 9;
    y[i] = x[i] * x[i];
  }
  sw::step_env env;
  env.lr = 0.01;
  for (env.step = 1; env.step <= steps; ++env.step) {
    run.set_input(0, x);
    run.set_input(1, y);
    run.run(env);
  }
  return static_cast<double>(run.loss());
}

}  // namespace gated

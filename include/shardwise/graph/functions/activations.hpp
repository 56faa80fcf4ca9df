// SPDX-License-Identifier: Apache-2.0
// Elementwise functions beyond those that every program reads, under PyTorch's names: rounding, erf, log1p, expm1, softplus and what
// else stands between layers. One kernel each way, made like a user's own operations: beside it include
// shardwise/operations/activation/host.hpp, and its device.cuh in one CUDA source of a program for GPUs. None takes a partial operand;
// gradients have none in turn. Passes fuse none of them: what has to be one kernel with its neighbours is written in the functions of
// pointwise_functions.hpp.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/option_number.hpp>
#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/operations/activation/record.hpp>

namespace shardwise::inline v0_1 {

namespace custom {

#define SHARDWISE_X(function)                      \
  inline constexpr custom_operation function##_dx{ \
      .name = #function "_dx", .operands = 2, .record = operations::activation_dx, .adjoint = &autodiff::unknown};
SHARDWISE_X(erf)
SHARDWISE_X(log1p)
SHARDWISE_X(expm1)
SHARDWISE_X(softplus)
SHARDWISE_X(leaky_relu)
SHARDWISE_X(elu)
#undef SHARDWISE_X

// The cotangent times the derivative at the operand, or, of OfResult, as a function of the result.
template <const custom_operation& Dx, bool OfResult = false>
constexpr void pull_activation(autodiff::pullback& p) {
  p.give(0, p.make(Dx, p.n.a, p.n.f, p.dy, OfResult ? p.id : p.n.in[0]));
}
template <const custom_operation& Dx, bool OfResult = false>
inline constexpr autodiff::adjoint_rule activation_rule = autodiff::pulled(&pull_activation<Dx, OfResult>);

#define SHARDWISE_X(function, rule)           \
  inline constexpr custom_operation function{ \
      .name = #function, .operands = 1, .record = operations::activation, .adjoint = &rule};
SHARDWISE_X(floor, autodiff::no_derivative)
SHARDWISE_X(ceil, autodiff::no_derivative)
SHARDWISE_X(round, autodiff::no_derivative)
SHARDWISE_X(erf, activation_rule<erf_dx>)
SHARDWISE_X(log1p, activation_rule<log1p_dx>)
SHARDWISE_X(softplus, activation_rule<softplus_dx>)
SHARDWISE_X(leaky_relu, activation_rule<leaky_relu_dx>)
SHARDWISE_X(elu, activation_rule<elu_dx>)
#undef SHARDWISE_X
inline constexpr autodiff::adjoint_rule expm1_rule = activation_rule<expm1_dx, true>;
inline constexpr custom_operation expm1{
    .name = "expm1", .operands = 1, .record = operations::activation, .adjoint = &expm1_rule};

// silu(gate) up, each way one kernel an operand.
inline constexpr custom_operation swiglu_gate{
    .name = "swiglu_gate", .operands = 3, .record = operations::activation_dx, .adjoint = &autodiff::unknown};
inline constexpr custom_operation swiglu_up{
    .name = "swiglu_up", .operands = 2, .record = operations::activation_dx, .adjoint = &autodiff::unknown};
inline constexpr autodiff::adjoint_rule swiglu_rule = autodiff::pulled<2>([](autodiff::pullback& p) {
  const int gate = p.n.in[0], up = p.n.in[1];
  if (p.wants(0)) p.give_summed(0, p.make(swiglu_gate, {}, 0, p.dy, gate, up));
  if (p.wants(1)) p.give_summed(1, p.make(swiglu_up, {}, 0, p.dy, gate));
});
inline constexpr custom_operation swiglu{
    .name = "swiglu", .operands = 2, .record = operations::activation, .adjoint = &swiglu_rule};

}  // namespace custom

// floor, ceil: the whole number at most, at least as large. round: the nearest, of two the even one, as PyTorch. Their gradient is zero.
// erf. log1p: log(1 + x), expm1: e^x - 1, both exact for small x.
#define SHARDWISE_X(name)           \
  template <tensor A>               \
  constexpr auto name(const A& a) { \
    return call<custom::name>(a);   \
  }
SHARDWISE_X(floor)
SHARDWISE_X(ceil)
SHARDWISE_X(round)
SHARDWISE_X(erf)
SHARDWISE_X(log1p)
SHARDWISE_X(expm1)
#undef SHARDWISE_X

struct softplus_options {
  option_number beta = 1.0, threshold = 20.0;
};

// log(1 + e^(beta x)) / beta, which overflows nowhere; x where beta x is above the threshold: softplus<softplus_options{.beta = 2}>(x).
template <softplus_options Options = softplus_options{}, tensor A>
constexpr auto softplus(const A& a) {
  constexpr op_attr attributes =
      pack_attributes(softplus_attributes{real(Options.beta.value()), real(Options.threshold.value())});
  return call<custom::softplus, attributes>(a);
}
// log(sigmoid(x)), which is 0 or -infinity nowhere but at the infinities.
template <tensor A>
constexpr auto log_sigmoid(const A& a) {
  return neg(softplus<softplus_options{.threshold = 1e9}>(neg(a)));
}
// x, where it is above 0, else slope x: so is the gradient at 0.
template <tensor A>
constexpr auto leaky_relu(const A& a, double slope = 0.01) {
  return call<custom::leaky_relu>(slope, a);
}
// x, where it is above 0, else alpha (e^x - 1).
template <tensor A>
constexpr auto elu(const A& a, double alpha = 1) {
  return call<custom::elu>(alpha, a);
}

// --- gated units ----------------------------------------------------------------------------------------------------------------

// silu(gate) up, gelu(gate) up, relu(gate) up: what Llama's, T5's and other blocks have between their layers. Operands broadcast.
template <tensor G, tensor U>
constexpr auto swiglu(const G& gate, const U& up) {
  return call<custom::swiglu>(gate, up);
}
template <gelu_form Form = gelu_form::erf, tensor G, tensor U>
constexpr auto geglu(const G& gate, const U& up) {
  return mul(gelu<Form>(gate), up);
}
template <tensor G, tensor U>
constexpr auto reglu(const G& gate, const U& up) {
  return mul(relu(gate), up);
}
// The first half along Dim times the sigmoid of the second, as torch.nn.functional.glu. Dim is even and not sharded.
template <int Dim = -1, tensor A>
constexpr auto glu(const A& a) {
  if constexpr (!detail::resolved<A>) {
    return detail::unresolved<typename A::mesh_type>{};
  } else {
    constexpr int d = detail::own_dim(Dim, A::sp.rank);
    constexpr std::int64_t extent = d >= 0 && d < A::sp.rank ? A::sp.extent[d] : 0;
    if constexpr (d < 0 || d >= A::sp.rank) {
      return detail::refused<problem::dim_out_of_range, op_code::slice, operand_t<A::sp>>(a);
    } else if constexpr (extent % 2 != 0) {
      return detail::refused<problem::glu_odd, op_code::slice, operand_t<A::sp>>(a);
    } else {
      return mul(narrow<d, 0, extent / 2>(a), sigmoid(narrow<d, extent / 2, extent / 2>(a)));
    }
  }
}

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// Elementwise functions with PyTorch's names and conventions. None but neg, scale, div, where and lerp takes a partial
// operand: the others are not linear, and adding a number to partial sums would add it once for each rank.
#pragma once

#include <shardwise/graph/functions.hpp>

namespace shardwise {

// abs: its gradient at 0 is 0. sign: has none. reciprocal: 1 / x; rsqrt: 1 / sqrt(x).
#define SHARDWISE_X(name)                                       \
  template <tensor A>                                           \
  constexpr auto name(const A& a) {                             \
    return detail::apply<op_code::name, detail::no_attr>(0, a); \
  }
SHARDWISE_X(abs)
SHARDWISE_X(sign)
SHARDWISE_X(exp)
SHARDWISE_X(log)
SHARDWISE_X(sqrt)
SHARDWISE_X(rsqrt)
SHARDWISE_X(reciprocal)
SHARDWISE_X(sigmoid)
SHARDWISE_X(sin)
SHARDWISE_X(cos)
#undef SHARDWISE_X

template <tensor A>
constexpr auto neg(const A& a) {
  return scale(a, -1);
}
template <tensor A>
constexpr auto operator-(const A& a) {
  return neg(a);
}
template <tensor A>
constexpr auto square(const A& a) {
  return mul(a, a);
}
// x sigmoid(x)
template <tensor A>
constexpr auto silu(const A& a) {
  return mul(a, sigmoid(a));
}
template <tensor A>
constexpr auto pow(const A& a, double exponent) {
  return detail::apply<op_code::pow, detail::no_attr>(exponent, a);
}
// Each element brought into [low, high]. The gradient passes where the element was inside, bounds included.
template <tensor A>
constexpr auto clamp_min(const A& a, double low) {
  return detail::apply<op_code::clamp_min, detail::no_attr>(low, a);
}
template <tensor A>
constexpr auto clamp_max(const A& a, double high) {
  return detail::apply<op_code::clamp_max, detail::no_attr>(high, a);
}
template <tensor A>
constexpr auto clamp(const A& a, double low, double high) {
  return clamp_max(clamp_min(a, low), high);
}

template <tensor A, tensor B>
constexpr auto div(const A& a, const B& b) {
  return detail::apply<op_code::div, detail::no_attr>(0, a, b);
}
template <tensor A>
constexpr auto div(const A& a, double number) {
  return scale(a, 1 / number);
}
template <tensor A, tensor B>
constexpr auto operator/(const A& a, const B& b) {
  return div(a, b);
}
template <tensor A>
constexpr auto operator/(const A& a, double number) {
  return div(a, number);
}
template <tensor A>
constexpr auto operator/(double number, const A& a) {
  return scale(reciprocal(a), number);
}
template <tensor A>
constexpr auto operator-(double number, const A& a) {
  return add(neg(a), number);
}
template <tensor A>
constexpr auto operator*(double factor, const A& a) {
  return scale(a, factor);
}

// Elementwise; equal elements share the gradient evenly. A NaN in either is the result.
template <tensor A, tensor B>
constexpr auto maximum(const A& a, const B& b) {
  return detail::apply<op_code::maximum, detail::no_attr>(0, a, b);
}
template <tensor A, tensor B>
constexpr auto minimum(const A& a, const B& b) {
  return detail::apply<op_code::minimum, detail::no_attr>(0, a, b);
}

// int32 tensors of 0 and 1, without gradient; of two tensors of one element type (int32 too), or of one and a number.
#define SHARDWISE_X(name)                                          \
  template <tensor A, tensor B>                                    \
  constexpr auto name(const A& a, const B& b) {                    \
    return detail::apply<op_code::name, detail::no_attr>(0, a, b); \
  }                                                                \
  template <tensor A>                                              \
  constexpr auto name(const A& a, double number) {                 \
    return name(a, constant_like(a, number));                      \
  }
SHARDWISE_X(eq)
SHARDWISE_X(ne)
SHARDWISE_X(lt)
SHARDWISE_X(le)
SHARDWISE_X(gt)
SHARDWISE_X(ge)
#undef SHARDWISE_X

// a where the mask (int32) is not 0, b elsewhere; all three broadcast. a and b may both be partial.
template <tensor M, tensor A, tensor B>
constexpr auto where(const M& mask, const A& a, const B& b) {
  return detail::apply<op_code::where, detail::no_attr>(0, mask, a, b);
}
// The number where the mask is not 0, a elsewhere.
template <tensor A, tensor M>
constexpr auto masked_fill(const A& a, const M& mask, double number) {
  return where(mask, constant_like(a, number), a);
}

// a + weight (b - a), from the nearer end.
template <tensor A, tensor B>
constexpr auto lerp(const A& a, const B& b, double weight) {
  const auto way = sub(b, a);
  return weight < 0.5 ? add(a, scale(way, weight)) : sub(b, scale(way, 1 - weight));
}

}  // namespace shardwise

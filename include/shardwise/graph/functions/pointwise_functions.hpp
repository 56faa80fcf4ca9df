// SPDX-License-Identifier: Apache-2.0
// Elementwise functions with PyTorch's names and conventions. None but neg, scale, div, where and lerp takes a partial
// operand: the others are not linear, and adding a number to partial sums would add it once for each rank.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <shardwise/graph/functions/functions.hpp>

namespace shardwise::inline v0_1 {

// A function of one tensor, and of one and a number, whose formula stands in operations/pointwise/formulas.hpp: a name here makes
// it and its form in place (mutating_functions.hpp). abs: its gradient at 0 is 0. sign: has none. reciprocal: 1 / x; rsqrt:
// 1 / sqrt(x). clamp_min and clamp_max bring each element to the number at least, at most; the gradient passes where the element
// was there, the bound included.
#define SHARDWISE_FUNCTIONS_OF_ONE(X) \
  X(abs) X(sign) X(exp) X(log) X(sqrt) X(rsqrt) X(reciprocal) X(sigmoid) X(sin) X(cos) X(relu) X(tanh)
#define SHARDWISE_FUNCTIONS_WITH_NUMBER(X) X(pow) X(clamp_min) X(clamp_max)

#define SHARDWISE_X(name)                                       \
  template <tensor A>                                           \
  constexpr auto name(const A& a) {                             \
    return detail::apply<op_code::name, detail::no_attr>(0, a); \
  }
SHARDWISE_FUNCTIONS_OF_ONE(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name)                                            \
  template <tensor A>                                                \
  constexpr auto name(const A& a, double number) {                   \
    return detail::apply<op_code::name, detail::no_attr>(number, a); \
  }
SHARDWISE_FUNCTIONS_WITH_NUMBER(SHARDWISE_X)
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
// Each element brought into [low, high].
template <tensor A>
constexpr auto clamp(const A& a, double low, double high) {
  return clamp_max(clamp_min(a, low), high);
}

template <tensor A, tensor B>
constexpr auto div(const A& a, const B& b) {
  return detail::apply<op_code::div, detail::no_attr>(0, a, b);
}
namespace detail {

// Whether 1 / number is as exact as any product of the element type: neither too large for it nor so small that it loses digits.
constexpr bool inverts_exactly(dtype type, double number) {
  const double size = number < 0 ? -number : number;
  const double least = type == dtype::f32 ? 2.938735877055719e-39 : 5.562684646268003e-309;  // 1 / 2^128, 1 / 2^1024
  const double most = type == dtype::f32 ? 8.507059173023462e+37 : 4.49423283715579e+307;    // 1 / 2^-126, 1 / 2^-1022
  return !(size > 0 && size <= least) && !(size > most && size < std::numeric_limits<double>::infinity());
}

// The number as an element. (nvcc evaluates no conversion that overflows or that leaves nothing.)
constexpr double of_type(dtype type, double number) {
  if (type != dtype::f32) return number;
  constexpr double none = 7.006492321624085e-46;  // 2^-150, half of the smallest
  if (number <= none && number >= -none) return number < 0 ? -0.0 : number > 0 ? 0.0 : number;
  if (number > 3.4028235e38 || number < -3.4028235e38)
    return number > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  return static_cast<double>(static_cast<float>(number));
}

}  // namespace detail

// A product with 1 / divisor, as PyTorch on devices: within one unit of the quotient. Where that inverse would overflow or
// lose digits, the product takes two steps, one of which is by a power of two.
template <tensor A>
constexpr auto div(const A& a, double divisor) {
  if constexpr (!detail::resolved<A>) {
    return scale(a, 1);
  } else {
    const double number = detail::inverts_exactly(A::sp.type, divisor) ? divisor : detail::of_type(A::sp.type, divisor);
    const double shrink = A::sp.type == dtype::f32 ? 5.421010862427522e-20 : 2.938735877055719e-39;  // 2^-64, 2^-128
    const double size = number < 0 ? -number : number;
    constexpr double infinite = std::numeric_limits<double>::infinity();
    if (number == 0) return scale(a, (std::bit_cast<std::uint64_t>(number) >> 63) != 0 ? -infinite : infinite);
    return detail::inverts_exactly(A::sp.type, number) ? scale(a, 1 / number)
           : size < 1                                  ? scale(scale(a, 1 / shrink), 1 / (number / shrink))
                                                       : scale(scale(a, 1 / (number * shrink)), shrink);
  }
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

// Elementwise; equal elements share the gradient evenly. A NaN in either is the result, and both have the whole gradient there.
template <tensor A, tensor B>
constexpr auto maximum(const A& a, const B& b) {
  return detail::apply<op_code::maximum, detail::no_attr>(0, a, b);
}
template <tensor A, tensor B>
constexpr auto minimum(const A& a, const B& b) {
  return detail::apply<op_code::minimum, detail::no_attr>(0, a, b);
}

namespace detail {

// What an int32 tensor's comparison with a real number is in whole numbers: lt with 1.5 is lt with 2; beyond int32's range, and
// with NaN, all or nothing.
struct whole_comparison {
  op_code op;  // the comparison with `number`, or one of the two that follow
  double number;
};
inline constexpr op_code holds_always = op_code::input, holds_never = op_code::count;

constexpr whole_comparison in_whole_numbers(op_code op, double x) {
  const whole_comparison always{holds_always, 0}, never{holds_never, 0};
  if (op == op_code::eq) return is_int32(x) ? whole_comparison{op, x} : never;
  if (op == op_code::ne) return is_int32(x) ? whole_comparison{op, x} : always;
  if (!(x == x)) return never;
  if (op == op_code::lt) return x <= least_int32 ? never : x > most_int32 ? always : whole_comparison{op, ceil_of(x)};
  if (op == op_code::le) return x < least_int32 ? never : x >= most_int32 ? always : whole_comparison{op, floor_of(x)};
  if (op == op_code::gt) return x >= most_int32 ? never : x < least_int32 ? always : whole_comparison{op, floor_of(x)};
  return x > most_int32 ? never : x <= least_int32 ? always : whole_comparison{op, ceil_of(x)};
}

template <op_code Op, tensor A>
constexpr auto compare_with(const A& a, double number) {
  if constexpr (!resolved<A> || is_floating(A::sp.type)) {
    return apply<Op, no_attr>(0, a, constant_like(a, number));
  } else {
    const whole_comparison c = in_whole_numbers(Op, number);
    return c.op == Op             ? apply<Op, no_attr>(0, a, constant_like(a, c.number))
           : c.op == holds_always ? apply<op_code::ge, no_attr>(0, a, constant_like(a, least_int32))
                                  : apply<op_code::lt, no_attr>(0, a, constant_like(a, least_int32));
  }
}

}  // namespace detail

// int32 tensors of 0 and 1, without gradient; of two tensors of one element type (int32 too), or of one and a number. An int32
// tensor is compared with the number itself, whole or not, in int32's range or not (PyTorch rounds both to float32).
#define SHARDWISE_X(name)                                          \
  template <tensor A, tensor B>                                    \
  constexpr auto name(const A& a, const B& b) {                    \
    return detail::apply<op_code::name, detail::no_attr>(0, a, b); \
  }                                                                \
  template <tensor A>                                              \
  constexpr auto name(const A& a, double number) {                 \
    return detail::compare_with<op_code::name>(a, number);         \
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

// The same numbers as elements of T: rounded to nearest, ties to even; as integers towards zero; as bool whether they are not 0.
// The gradient is converted back. One of type T already is itself. An int64 that is no int32 throws on the host.
template <class T, tensor A>
constexpr auto cast(const A& a) {
  constexpr dtype to = dtype_v<T>;
  if constexpr (detail::resolved<A> && A::sp.type == to) return a;
  else return detail::apply<op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(to))>(0, a);
}

// a + weight (b - a), from the nearer end. The way comes first in both sums, so that implicit operands go where it is.
template <tensor A, tensor B>
constexpr auto lerp(const A& a, const B& b, double weight) {
  const auto way = sub(b, a);
  return weight < 0.5 ? add(scale(way, weight), a) : add(scale(way, weight - 1), b);
}

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// Formulas of the elementwise functions and of their adjoints, once for all devices, kernels of their own and fused ones: x, y
// operands, f the call's real parameter rounded to T, m the device's mathematics, T the element type. A NaN in an operand or in f
// is the result, as in PyTorch (save for sign, where PyTorch has 0): test/support/special_values.hpp has every function's answers.
#pragma once

#include <shardwise/propagation/op.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

// clang-format off: a table
#define SHARDWISE_FORMULAS1(X)                      \
  X(contiguous, x)                                  \
  X(scale, x * f)                                   \
  X(relu, m::less(x, T(0)) ? T(0) : x)              \
  X(tanh, m::tanh(x))                               \
  X(gelu_tanh, half<T> * x * (T(1) + m::tanh(m::from(root_of_two_over_pi) * (x + m::from(gelu_cubic) * x * x * x)))) \
  X(gelu_erf, half<T> * x * (T(1) + m::erf(m::from(root_of_half) * x))) \
  X(abs, m::less(T(0), x) ? x : T(0) - x)           \
  X(sign, m::less(T(0), x) ? T(1) : m::less(x, T(0)) ? T(0) - T(1) : x == x ? T(0) : x) \
  X(exp, m::exp(x))                                 \
  X(log, m::log(x))                                 \
  X(sqrt, m::sqrt(x))                               \
  X(rsqrt, T(1) / m::sqrt(x))                       \
  X(reciprocal, T(1) / x)                           \
  X(sigmoid, T(1) / (T(1) + m::exp(T(0) - x)))      \
  X(sin, m::sin(x))                                 \
  X(cos, m::cos(x))                                 \
  X(pow, m::pow(x, f))                              \
  X(clamp_min, m::less(x, f) || !(f == f) ? f : x)  \
  X(clamp_max, m::less(f, x) || !(f == f) ? f : x)

// Adjoints: x is the cotangent, y the function's operand, of tanh its result; where y is a NaN, relu's lets the cotangent through,
// as PyTorch's. wins counts ties: a NaN wins nothing. keeps is the first operand's part of the gradient of the larger one, both
// operands' own beside a NaN.
#define SHARDWISE_FORMULAS2(X)                                                 \
  X(add, x + y)                                                                \
  X(sub, x - y)                                                                \
  X(mul, x * y)                                                                \
  X(relu_dx, m::less(y, T(0)) || y == T(0) ? T(0) : x)                        \
  X(tanh_dx, x * (T(1) - y * y))                                              \
  X(gelu_tanh_dx, x * half<T> * gelu_tanh_slope<m>(y))                        \
  X(gelu_erf_dx, x * gelu_erf_slope<m>(y))                                    \
  X(div, x / y)                                                                \
  X(maximum, m::less(x, y) || !(y == y) ? y : x)                               \
  X(minimum, m::less(y, x) || !(y == y) ? y : x)                               \
  X(wins, x == y ? T(1) / T(2) : m::less(y, x) ? T(1) : T(0))                  \
  X(keeps, x == y ? T(1) / T(2) : m::less(x, y) ? T(0) : T(1))

// Results are 0 or 1; with a NaN only `ne` holds.
#define SHARDWISE_COMPARISONS(X)     \
  X(eq, x == y)                      \
  X(ne, !(x == y))                   \
  X(lt, m::less(x, y))               \
  X(le, m::less(x, y) || x == y)     \
  X(gt, m::less(y, x))               \
  X(ge, m::less(y, x) || x == y)
// clang-format on

namespace shardwise::inline v0_1::operations {

// value<m, T>(f, x...): one element of the result; of a comparison, whether it holds.
template <op_code Op>
struct SHARDWISE_HIDDEN element;

template <op_code Op>
concept has_element = requires { element<Op>::arity; };

namespace detail {

inline constexpr double root_of_two_over_pi = 0.7978845608028654, root_of_half = 0.7071067811865476, gelu_cubic = 0.044715;
inline constexpr double normal_density_at_0 = 0.3989422804014327;  // 1 / sqrt(2 pi)

template <class T>
inline constexpr T half = T(1) / T(2);

// Twice the derivative of gelu's tanh form: with u = sqrt(2 / pi) (x + c x^3), 1 + tanh u + x (1 - tanh^2 u) u'. The factor that
// vanishes for large x comes first in each product: x^2 alone overflows, and 0 times infinity is no number.
template <class m, class T>
constexpr T gelu_tanh_slope(T x) {
  const T k = m::from(root_of_two_over_pi), c = m::from(gelu_cubic);
  const T t = m::tanh(k * (x + c * x * x * x));
  const T rise = (T(1) - t * t) * k * x;
  return T(1) + t + rise + T(3) * c * x * (rise * x);
}
// The derivative of x Phi(x): Phi(x) + x phi(x).
template <class m, class T>
constexpr T gelu_erf_slope(T x) {
  const T below = half<T> * (T(1) + m::erf(m::from(root_of_half) * x));
  const T density = m::from(normal_density_at_0) * m::exp(T(0) - half<T> * x * x);
  return below + x * density;
}

}  // namespace detail

#define SHARDWISE_X(name, ...)                            \
  template <>                                             \
  struct SHARDWISE_HIDDEN element<op_code::name> {        \
    static constexpr int arity = 1;                       \
    template <class m, class T>                           \
    static constexpr T value([[maybe_unused]] T f, T x) { \
      using namespace detail;                             \
      return static_cast<T>(__VA_ARGS__);                 \
    }                                                     \
  };
SHARDWISE_FORMULAS1(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name, ...)                     \
  template <>                                      \
  struct SHARDWISE_HIDDEN element<op_code::name> { \
    static constexpr int arity = 2;                \
    template <class m, class T>                    \
    static constexpr T value(T, T x, T y) {        \
      using namespace detail;                      \
      return static_cast<T>(__VA_ARGS__);          \
    }                                              \
  };
SHARDWISE_FORMULAS2(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name, ...)                     \
  template <>                                      \
  struct SHARDWISE_HIDDEN element<op_code::name> { \
    static constexpr int arity = 2;                \
    template <class m, class T>                    \
    static constexpr bool value(T, T x, T y) {     \
      return __VA_ARGS__;                          \
    }                                              \
  };
SHARDWISE_COMPARISONS(SHARDWISE_X)
#undef SHARDWISE_X

}  // namespace shardwise::inline v0_1::operations

SHARDWISE_UNFUSED_END

// SPDX-License-Identifier: Apache-2.0
// The formulas of elementwise functions, once for all devices: x, y operands, f the call's real parameter, m the
// device's math, T the element type. Nothing is computed here. A NaN in an operand or in f is the result, as in PyTorch (save for
// sign, where PyTorch has 0): test/support/special_values.hpp has every function's answers.
#pragma once

#define SHARDWISE_FORMULAS1(X)                      \
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

// wins counts ties: a NaN wins nothing. keeps is the first operand's part of the gradient of the larger one, both operands' own
// beside a NaN.
#define SHARDWISE_FORMULAS2(X)                                                 \
  X(div, x / y)                                                                \
  X(maximum, m::less(x, y) || !(y == y) ? y : x)                               \
  X(minimum, m::less(y, x) || !(y == y) ? y : x)                               \
  X(wins, x == y ? T(1) / T(2) : m::less(y, x) ? T(1) : T(0))                 \
  X(keeps, x == y ? T(1) / T(2) : m::less(x, y) ? T(0) : T(1))

// Results are 0 or 1; with a NaN only `ne` holds.
#define SHARDWISE_COMPARISONS(X)     \
  X(eq, x == y)                      \
  X(ne, !(x == y))                   \
  X(lt, m::less(x, y))               \
  X(le, m::less(x, y) || x == y)     \
  X(gt, m::less(y, x))               \
  X(ge, m::less(y, x) || x == y)

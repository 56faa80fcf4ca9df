// SPDX-License-Identifier: Apache-2.0
// The formulas of elementwise functions, once for all devices: x, y operands, f the call's real parameter, m the
// device's math, T the element type. Nothing is computed here.
#pragma once

#define SHARDWISE_FORMULAS1(X)                      \
  X(abs, m::less(T(0), x) ? x : T(0) - x)           \
  X(sign, T(m::less(T(0), x)) - T(m::less(x, T(0)))) \
  X(exp, m::exp(x))                                 \
  X(log, m::log(x))                                 \
  X(sqrt, m::sqrt(x))                               \
  X(rsqrt, T(1) / m::sqrt(x))                       \
  X(reciprocal, T(1) / x)                           \
  X(sigmoid, T(1) / (T(1) + m::exp(T(0) - x)))      \
  X(sin, m::sin(x))                                 \
  X(cos, m::cos(x))                                 \
  X(pow, m::pow(x, f))                              \
  X(clamp_min, m::less(x, f) ? f : x)               \
  X(clamp_max, m::less(f, x) ? f : x)

// A NaN in either operand is the result, as in PyTorch.
#define SHARDWISE_FORMULAS2(X)                                                 \
  X(div, x / y)                                                                \
  X(maximum, m::less(x, y) || !(y == y) ? y : x)                               \
  X(minimum, m::less(y, x) || !(y == y) ? y : x)                               \
  X(wins, x == y ? T(1) / T(2) : m::less(y, x) ? T(1) : T(0))

// Results are 0 or 1; with a NaN only `ne` holds.
#define SHARDWISE_COMPARISONS(X)     \
  X(eq, x == y)                      \
  X(ne, !(x == y))                   \
  X(lt, m::less(x, y))               \
  X(le, m::less(x, y) || x == y)     \
  X(gt, m::less(y, x))               \
  X(ge, m::less(y, x) || x == y)

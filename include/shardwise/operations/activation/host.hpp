// SPDX-License-Identifier: Apache-2.0
// Formulas of further elementwise functions, one for hosts and devices: `further_math` has what a device's mathematics lack.
#pragma once

#include <type_traits>

#include <shardwise/graph/functions/activations.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/further_math.hpp>
#include <shardwise/runtime/host/math.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Of the mathematics M: floor, ceil, round, expm1, log1p. In proofs, over integers, other functions that are arbitrary, too.
template <class M>
struct further_math;

template <class T>
struct further_math<math<T>> {
#define SHARDWISE_X(name, other)                                            \
  static constexpr T name(T x) {                                            \
    if constexpr (std::is_floating_point_v<T>) return vector_math::name(x); \
    else return other;                                                      \
  }
  SHARDWISE_X(floor, math<T>::sin(x + T(3)))
  SHARDWISE_X(ceil, math<T>::sin(x + T(4)))
  SHARDWISE_X(round, math<T>::sin(x + T(5)))
  SHARDWISE_X(expm1, math<T>::exp(x) - T(1))
  SHARDWISE_X(log1p, math<T>::log(T(1) + x))
#undef SHARDWISE_X
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

namespace operations::detail {
inline constexpr double two_over_root_of_pi = 1.1283791670955126;
}

// Formulas that stand between SHARDWISE_UNFUSED_BEGIN and its end run in vectors: see host::detail::in_vectors.
#define SHARDWISE_FORMULA(operation, arguments, ...)       \
  template <>                                              \
  struct SHARDWISE_HIDDEN formula<custom::operation> {     \
    static constexpr bool in_vectors = true;               \
    template <class m, class T>                            \
    static constexpr T value arguments {                   \
      [[maybe_unused]] typedef host::further_math<m> more; \
      return static_cast<T>(__VA_ARGS__);                  \
    }                                                      \
  };
// Of adjoints dy is the cotangent, x the function's operand.
SHARDWISE_FORMULA(floor, (T x), more::floor(x))
SHARDWISE_FORMULA(ceil, (T x), more::ceil(x))
SHARDWISE_FORMULA(round, (T x), more::round(x))
SHARDWISE_FORMULA(erf, (T x), m::erf(x))
SHARDWISE_FORMULA(erf_dx, (T dy, T x), dy*(m::from(operations::detail::two_over_root_of_pi) * m::exp(T(0) - x * x)))
SHARDWISE_FORMULA(log1p, (T x), more::log1p(x))
SHARDWISE_FORMULA(log1p_dx, (T dy, T x), dy / (T(1) + x))
SHARDWISE_FORMULA(expm1, (T x), more::expm1(x))
SHARDWISE_FORMULA(expm1_dx, (T dy, T y), dy*(y + T(1)))
SHARDWISE_FORMULA(leaky_relu, (T x, T slope), m::less(T(0), x) ? x : x* slope)
SHARDWISE_FORMULA(leaky_relu_dx, (T dy, T x, T slope), m::less(T(0), x) ? dy : dy* slope)
SHARDWISE_FORMULA(elu, (T x, T alpha), m::less(T(0), x) ? x : alpha* more::expm1(x))
SHARDWISE_FORMULA(elu_dx, (T dy, T x, T alpha), m::less(T(0), x) ? dy : dy*(alpha* m::exp(x)))
SHARDWISE_FORMULA(swiglu, (T gate, T up), gate / (T(1) + m::exp(T(0) - gate)) * up)
SHARDWISE_FORMULA(swiglu_up, (T dy, T gate), dy*(gate / (T(1) + m::exp(T(0) - gate))))
#undef SHARDWISE_FORMULA

template <>
struct SHARDWISE_HIDDEN formula<custom::swiglu_gate> {
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T gate, T up) {
    const T s = T(1) / (T(1) + m::exp(T(0) - gate));
    return dy * up * (s * (T(1) + gate * (T(1) - s)));
  }
};
// With z = beta x: max(z, 0) + log(1 + e^-|z|), over beta.
template <>
struct SHARDWISE_HIDDEN formula<custom::softplus> {
  using attributes = softplus_attributes;
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T x, const attributes& a) {
    const T z = x * m::from(a.beta);
    const T size = m::less(z, T(0)) ? z : T(0) - z;  // less than 0; a NaN stays one
    const T y = (m::less(z, T(0)) ? T(0) : z) + host::further_math<m>::log1p(m::exp(size));
    return m::less(m::from(a.threshold), z) ? x : y / m::from(a.beta);
  }
};
template <>
struct SHARDWISE_HIDDEN formula<custom::softplus_dx> {
  using attributes = softplus_attributes;
  static constexpr bool in_vectors = true;
  template <class m, class T>
  static constexpr T value(T dy, T x, const attributes& a) {
    const T z = x * m::from(a.beta);
    return m::less(m::from(a.threshold), z) ? dy : dy / (T(1) + m::exp(T(0) - z));
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_UNFUSED_END

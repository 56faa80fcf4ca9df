// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels, broadcast from the right.
#pragma once

#include <shardwise/runtime/host/formulas.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {

namespace detail {

template <class T, class F>
constexpr void map1(const call& c, const operands<T>& q, F f) {
  const layout* const in[1] = {&c.l[0]};
  const walk<2> w = broadcast_walk<2>(c.l[result], in);
  T* const o = q.p[result];
  const T* const x = q.p[0];
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = x + off[1];
    if (s[0] == 1 && s[1] == 1) {
      // f = f: in constants, nvcc 13 gives a closure inside a plain copy capture wrong values
      independent_loop<T>(n, [=, f = f](std::int64_t i) { oo[i] = f(xx[i]); });
    } else {
      for (std::int64_t i = 0; i < n; ++i) oo[i * s[0]] = f(xx[i * s[1]]);
    }
  });
}

template <class T, class F>
constexpr void map2(const call& c, const operands<T>& q, F f) {
  const layout* const in[2] = {&c.l[0], &c.l[1]};
  const walk<3> w = broadcast_walk<3>(c.l[result], in);
  T* const o = q.p[result];
  const T* const x = q.p[0];
  const T* const y = q.p[1];
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = x + off[1];
    const T* const yy = y + off[2];
    if (s[0] == 1 && s[1] == 1 && s[2] == 1) {
      independent_loop<T>(n, [=, f = f](std::int64_t i) { oo[i] = f(xx[i], yy[i]); });
    } else {
      for (std::int64_t i = 0; i < n; ++i) oo[i * s[0]] = f(xx[i * s[1]], yy[i * s[2]]);
    }
  });
}

template <class T>
constexpr T half() {
  return T(1) / T(2);
}

}  // namespace detail

// One element of a pointwise operation, in one place for its own kernel and for fused ones: `arity` operands and the
// operation's real parameter f, already rounded to T.
template <op_code Op>
struct scalar;

template <op_code Op>
concept has_scalar = requires { scalar<Op>::arity; };

// The kernel that follows from the scalar function.
template <op_code Op>
struct map_kernel {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const T f = math<T>::from(c.f);
    if constexpr (scalar<Op>::arity == 1)
      detail::map1<T>(c, q, [=](T x) { return scalar<Op>::template of<T>(f, x); });
    else
      detail::map2<T>(c, q, [=](T x, T y) { return scalar<Op>::template of<T>(f, x, y); });
  }
};

#define SHARDWISE_MAP1(name, expression)                           \
  template <>                                                      \
  struct scalar<op_code::name> {                                   \
    static constexpr int arity = 1;                                \
    template <class T>                                             \
    static constexpr T of([[maybe_unused]] T f, T x) {             \
      using m [[maybe_unused]] = math<T>;                          \
      return static_cast<T>(expression);                           \
    }                                                              \
  };                                                               \
  template <>                                                      \
  struct kernel<op_code::name> : map_kernel<op_code::name> {};
#define SHARDWISE_MAP2(name, expression)                           \
  template <>                                                      \
  struct scalar<op_code::name> {                                   \
    static constexpr int arity = 2;                                \
    template <class T>                                             \
    static constexpr T of([[maybe_unused]] T f, T x, T y) {        \
      using m [[maybe_unused]] = math<T>;                          \
      return static_cast<T>(expression);                           \
    }                                                              \
  };                                                               \
  template <>                                                      \
  struct kernel<op_code::name> : map_kernel<op_code::name> {};

SHARDWISE_MAP2(add, x + y)
SHARDWISE_MAP2(sub, x - y)
SHARDWISE_MAP2(mul, x* y)
SHARDWISE_MAP1(scale, x* f)
SHARDWISE_MAP1(contiguous, x)
SHARDWISE_MAP1(relu, m::less(x, T(0)) ? T(0) : x)
SHARDWISE_MAP1(tanh, m::tanh(x))
SHARDWISE_MAP1(gelu_tanh, detail::half<T>() * x *
                              (T(1) + m::tanh(m::from(0.7978845608028654) * (x + m::from(0.044715) * x * x * x))))
SHARDWISE_MAP1(gelu_erf, detail::half<T>() * x * (T(1) + m::erf(m::from(0.7071067811865476) * x)))
// second operand: relu, gelu: the input; tanh: the output. A NaN lets the cotangent through, as in PyTorch.
SHARDWISE_MAP2(relu_bwd, m::less(y, T(0)) || y == T(0) ? T(0) : x)
SHARDWISE_MAP2(tanh_bwd, x*(T(1) - y * y))
SHARDWISE_FORMULAS1(SHARDWISE_MAP1)
SHARDWISE_FORMULAS2(SHARDWISE_MAP2)
#undef SHARDWISE_MAP1
#undef SHARDWISE_MAP2

// min(1, max_norm / (sqrt(sum of squares) + 1e-6)), as torch.nn.utils.clip_grad_norm_: of a NaN, NaN.
template <>
struct kernel<op_code::clip_factor> {
  template <class T>
  static constexpr void run(const call&, const operands<T>& q, const step_env& env) {
    using m = math<T>;
    const T ratio = m::from(env.max_norm) / (m::sqrt(q.p[0][0]) + m::from(1e-6));
    q.p[result][0] = m::less(T(1), ratio) ? T(1) : ratio;
  }
};

template <>
struct scalar<op_code::gelu_tanh_bwd> {
  static constexpr int arity = 2;
  template <class T>
  static constexpr T of(T, T g, T x) {
    using m = math<T>;
    const T k = m::from(0.7978845608028654), b = m::from(0.044715);
    const T t = m::tanh(k * (x + b * x * x * x));
    const T inner = k * (T(1) + T(3) * b * x * x);
    return static_cast<T>(g * detail::half<T>() * (T(1) + t + x * (T(1) - t * t) * inner));
  }
};
template <>
struct kernel<op_code::gelu_tanh_bwd> : map_kernel<op_code::gelu_tanh_bwd> {};

template <>
struct scalar<op_code::gelu_erf_bwd> {
  static constexpr int arity = 2;
  template <class T>
  static constexpr T of(T, T g, T x) {
    using m = math<T>;
    const T phi = detail::half<T>() * (T(1) + m::erf(m::from(0.7071067811865476) * x));
    const T density = m::from(0.3989422804014327) * m::exp(T(0) - detail::half<T>() * x * x);
    return static_cast<T>(g * (phi + x * density));
  }
};
template <>
struct kernel<op_code::gelu_erf_bwd> : map_kernel<op_code::gelu_erf_bwd> {};

template <>
struct kernel<op_code::fill> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = math<T>::from(c.f);
  }
};

}  // namespace shardwise::host

// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels, broadcast from the right: the host's formulas as functors of the one map kernel.
#pragma once

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/runtime/host/formulas.hpp>

namespace shardwise::cuda {

// The functions of <cmath>, in the element's own precision; correctly rounded within 1 to 2 units, never the fast ones.
template <class T>
struct math {
  static constexpr bool single = sizeof(T) == 4;
  static __device__ T exp(T x) {
    if constexpr (single)
      return ::expf(x);
    else
      return ::exp(x);
  }
  static __device__ T log(T x) {
    if constexpr (single)
      return ::logf(x);
    else
      return ::log(x);
  }
  static __device__ T tanh(T x) {
    if constexpr (single)
      return ::tanhf(x);
    else
      return ::tanh(x);
  }
  static __device__ T erf(T x) {
    if constexpr (single)
      return ::erff(x);
    else
      return ::erf(x);
  }
  static __device__ T sqrt(T x) {
    if constexpr (single)
      return ::sqrtf(x);
    else
      return ::sqrt(x);
  }
  static __device__ T sin(T x) {
    if constexpr (single)
      return ::sinf(x);
    else
      return ::sin(x);
  }
  static __device__ T cos(T x) {
    if constexpr (single)
      return ::cosf(x);
    else
      return ::cos(x);
  }
  static __device__ T pow(T x, T n) {
    // as host::power_of
    if (n == T(2)) return x * x;
    if (n == T(0.5)) return sqrt(x);
    if (n == T(-1)) return T(1) / x;
    if (n == T(3)) return x * x * x;
    if (n == T(-0.5)) return T(1) / sqrt(x);
    if (n == T(-2)) return T(1) / (x * x);
    if (n == T(1)) return x;
    if constexpr (single)
      return ::powf(x, n);
    else
      return ::pow(x, n);
  }
  static __device__ bool less(T a, T b) { return a < b; }
  static __host__ __device__ constexpr T from(double x) { return static_cast<T>(x); }
};

namespace detail {

template <class T, class F>
void map1(const call& c, op_code op, const F& f, context& ctx) {
  const layout* const in[1] = {&c.l[0]};
  map(op, host::broadcast_walk<2>(c.l[result], in), pointers<T, 2>{{as<T>(c.p[result]), as<T>(c.p[0])}}, f, ctx);
}

template <class T, class F>
void map2(const call& c, op_code op, const F& f, context& ctx) {
  const layout* const in[2] = {&c.l[0], &c.l[1]};
  map(op, host::broadcast_walk<3>(c.l[result], in), pointers<T, 3>{{as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1])}},
      f, ctx);
}

}  // namespace detail

// One element of a pointwise operation, for fused kernels: `arity` operands and its real parameter f.
template <op_code Op>
struct scalar;

// A functor, its kernel and its scalar function; `f` is the call's real parameter.
#define SHARDWISE_MAP1(name, ...)                                                     \
  template <class T>                                                                  \
  struct name##_functor {                                                             \
    T f;                                                                              \
    __device__ T operator()(T x) const {                                              \
      using m [[maybe_unused]] = math<T>;                                             \
      __VA_ARGS__                                                                     \
    }                                                                                 \
  };                                                                                  \
  template <>                                                                         \
  struct kernel<op_code::name> {                                                      \
    template <class T>                                                                \
    static void run(const call& c, context& ctx) {                                    \
      detail::map1<T>(c, op_code::name, name##_functor<T>{static_cast<T>(c.f)}, ctx); \
    }                                                                                 \
  };                                                                                  \
  template <>                                                                         \
  struct scalar<op_code::name> {                                                      \
    static constexpr int arity = 1;                                                   \
    template <class T>                                                                \
    static __device__ T of(T f, T x) {                                                \
      return name##_functor<T>{f}(x);                                                 \
    }                                                                                 \
  };
#define SHARDWISE_MAP2(name, ...)                                  \
  template <class T>                                               \
  struct name##_functor {                                          \
    __device__ T operator()(T x, T y) const {                      \
      using m [[maybe_unused]] = math<T>;                          \
      __VA_ARGS__                                                  \
    }                                                              \
  };                                                               \
  template <>                                                      \
  struct kernel<op_code::name> {                                   \
    template <class T>                                             \
    static void run(const call& c, context& ctx) {                 \
      detail::map2<T>(c, op_code::name, name##_functor<T>{}, ctx); \
    }                                                              \
  };                                                               \
  template <>                                                      \
  struct scalar<op_code::name> {                                   \
    static constexpr int arity = 2;                                \
    template <class T>                                             \
    static __device__ T of(T, T x, T y) {                          \
      return name##_functor<T>{}(x, y);                            \
    }                                                              \
  };

SHARDWISE_MAP2(add, return x + y;)
SHARDWISE_MAP2(sub, return x - y;)
SHARDWISE_MAP2(mul, return x * y;)
SHARDWISE_MAP1(scale, return x * f;)
SHARDWISE_MAP1(relu, return x < T(0) ? T(0) : x;)
SHARDWISE_MAP1(tanh, return m::tanh(x);)
SHARDWISE_MAP1(gelu_tanh, return T(0.5) * x * (T(1) + m::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));)
SHARDWISE_MAP1(gelu_erf, return T(0.5) * x * (T(1) + m::erf(T(0.7071067811865476) * x));)
// first operand: the cotangent; second: relu, gelu: the input; tanh: the output
SHARDWISE_MAP2(relu_bwd, return y <= T(0) ? T(0) : x;)
SHARDWISE_MAP2(tanh_bwd, return x * (T(1) - y * y);)
SHARDWISE_MAP2(gelu_tanh_bwd, {
  const T k = T(0.7978845608028654), b = T(0.044715);
  const T t = m::tanh(k * (y + b * y * y * y));
  const T inner = k * (T(1) + T(3) * b * y * y);
  return x * T(0.5) * (T(1) + t + y * (T(1) - t * t) * inner);
})
SHARDWISE_MAP2(gelu_erf_bwd, {
  const T phi = T(0.5) * (T(1) + m::erf(T(0.7071067811865476) * y));
  const T density = T(0.3989422804014327) * m::exp(-T(0.5) * y * y);
  return x * (phi + y * density);
})
#define SHARDWISE_X(name, ...) SHARDWISE_MAP1(name, return static_cast<T>(__VA_ARGS__);)
SHARDWISE_FORMULAS1(SHARDWISE_X)
#undef SHARDWISE_X
#define SHARDWISE_X(name, ...) SHARDWISE_MAP2(name, return static_cast<T>(__VA_ARGS__);)
SHARDWISE_FORMULAS2(SHARDWISE_X)
#undef SHARDWISE_X
#undef SHARDWISE_MAP1
#undef SHARDWISE_MAP2

template <>
struct kernel<op_code::contiguous> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::map1<T>(c, op_code::contiguous, identity{}, ctx);
  }
};

template <>
struct scalar<op_code::contiguous> {
  static constexpr int arity = 1;
  template <class T>
  static __device__ T of(T, T x) {
    return x;
  }
};

template <class T>
struct fill_functor {
  T value;
  __device__ T operator()() const { return value; }
};

template <>
struct kernel<op_code::fill> {
  template <class T>
  static void run(const call& c, context& ctx) {
    walk<1> w;
    const std::int64_t step[1] = {1};
    w.push(c.l[result].numel(), step);
    map(op_code::fill, w, pointers<T, 1>{{as<T>(c.p[result])}}, fill_functor<T>{static_cast<T>(c.f)}, ctx);
  }
};

namespace detail {
template <class T>
__global__ void clip_factor_kernel(const device_env* env, const T* square, T* out) {
  const T ratio = static_cast<T>(env->env.max_norm) / (math<T>::sqrt(*square) + static_cast<T>(1e-6));
  *out = ratio > T(1) ? T(1) : ratio;
}
}  // namespace detail

// min(1, max_norm / (sqrt(sum of squares) + 1e-6)), as torch.nn.utils.clip_grad_norm_: of a NaN, NaN.
template <>
struct kernel<op_code::clip_factor> {
  template <class T>
  static void run(const call& c, context& ctx) {
    launch(op_code::clip_factor, &detail::clip_factor_kernel<T>, 1, 1, ctx.stream, ctx.env,
           static_cast<const T*>(c.p[0]), as<T>(c.p[result]));
  }
};

}  // namespace shardwise::cuda

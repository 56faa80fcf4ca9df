// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels, broadcast from the right: the host's formulas as functors of the one map kernel.
#pragma once

#include <shardwise/operations/pointwise/formulas.hpp>
#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

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

// One element of a pointwise operation on a device; f is the operation's real parameter.
template <op_code Op, class T, class... X>
__device__ auto element(T f, X... x) {
  return operations::element<Op>::template value<math<T>, T>(f, x...);
}
template <op_code Op, class T>
struct element_functor {
  T f;
  template <class... X>
  __device__ T operator()(X... x) const {
    return element<Op>(f, x...);
  }
};

// The kernel that follows from the formula.
template <op_code Op>
struct element_kernel {
  template <class T>
  static void run(const call& c, context& ctx) {
    const element_functor<Op, T> f{static_cast<T>(c.f)};
    if constexpr (operations::element<Op>::arity == 1) detail::map1<T>(c, Op, f, ctx);
    else detail::map2<T>(c, Op, f, ctx);
  }
};

#define SHARDWISE_X(name, ...) \
  template <>                  \
  struct kernel<op_code::name> : element_kernel<op_code::name> {};
SHARDWISE_FORMULAS1(SHARDWISE_X)
SHARDWISE_FORMULAS2(SHARDWISE_X)
#undef SHARDWISE_X

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

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::cuda

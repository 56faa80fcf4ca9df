// SPDX-License-Identifier: Apache-2.0
// Functions of the elements at one place on a device, broadcast from the right: the host's formulas as functors of the one map
// kernel; comparisons, choices by a mask, dropout.
#pragma once

#include <shardwise/runtime/cuda/device/draw.cuh>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

template <class T, class F>
void map1(const call& c, op_code op, const F& f, context& ctx) {
  const layout* const in[1] = {&c.l[0]};
  map(op, host::broadcast_walk<2>(c.l[result], in), pointers<T, 2>{{as<T>(c.p[result]), as<T>(c.p[0])}}, f, ctx);
}

template <class T, class F>
void map2(const call& c, op_code op, const F& f, context& ctx) {
  const layout* const in[2] = {&c.l[0], &c.l[1]};
  map(op, host::broadcast_walk<3>(c.l[result], in), pointers<T, 3>{{as<T>(c.p[result]), as<T>(c.p[0]), as<T>(c.p[1])}}, f,
      ctx);
}

}  // namespace detail

// T: what elements are computed in.
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
    using C = computed_in<T>;
    const element_functor<Op, C> f{static_cast<C>(c.f)};
    if constexpr (rules::only_moves(Op)) detail::map1<word_of<T>>(c, Op, identity{}, ctx);
    else if constexpr (operations::element<Op>::arity == 1) detail::map1<T>(c, Op, f, ctx);
    else detail::map2<T>(c, Op, f, ctx);
  }
};

#define SHARDWISE_X(name, ...) \
  template <>                  \
  struct kernel<op_code::name> : element_kernel<op_code::name> {};
SHARDWISE_FORMULAS1(SHARDWISE_X)
SHARDWISE_FORMULAS2(SHARDWISE_X)
#undef SHARDWISE_X

namespace detail {
template <class T>
__global__ void clip_factor_kernel(const device_env* env, const T* square, T* out) {
  using C = computed_in<T>;
  const C ratio = static_cast<C>(env->env.max_norm) / (math<C>::sqrt(C(*square)) + static_cast<C>(1e-6));
  *out = static_cast<T>(ratio > C(1) ? C(1) : ratio);
}
}  // namespace detail

// min(1, max_norm / (sqrt(sum of squares) + 1e-6)), as torch.nn.utils.clip_grad_norm_: of a NaN, NaN.
template <>
struct kernel<op_code::clip_factor> {
  template <class T>
  static void run(const call& c, context& ctx) {
    launch(op_code::clip_factor, &detail::clip_factor_kernel<T>, 1, 1, ctx.stream, ctx.env, static_cast<const T*>(c.p[0]),
           as<T>(c.p[result]));
  }
};

namespace detail {

template <int K, class F>
void each_offset(op_code op, const call& c, const F& f, context& ctx) {
  walk<K> whole;
  const layout& o = c.l[result];
  for (int d = 0; d < o.rank; ++d) {
    std::int64_t s[K] = {o.str[d]};
    for (int k = 1; k < K; ++k) s[k] = host::broadcast_stride(c.l[k - 1], o.rank, d, o.global);
    whole.push(o.ext[d], s);
  }
  whole.merge();
  launch_points(op, whole, f, ctx);
}

}  // namespace detail

template <op_code Op, class T>
struct comparison_at {
  const T *a, *b;
  std::int32_t* o;
  __device__ void operator()(const std::int64_t* at) const {
    using C = computed_in<T>;
    o[at[0]] = element<Op>(C(0), C(a[at[1]]), C(b[at[2]])) ? 1 : 0;
  }
};
template <op_code Op>
struct comparison_kernel {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::each_offset<3>(Op, c, comparison_at<Op, T>{as<T>(c.p[0]), as<T>(c.p[1]), as<std::int32_t>(c.p[result])}, ctx);
  }
};

#define SHARDWISE_X(name, ...) \
  template <>                  \
  struct kernel<op_code::name> : comparison_kernel<op_code::name> {};
SHARDWISE_COMPARISONS(SHARDWISE_X)
#undef SHARDWISE_X

template <class T>
struct where_at {
  const std::int32_t* mask;
  const T *a, *b;
  T* o;
  __device__ void operator()(const std::int64_t* at) const { o[at[0]] = mask[at[1]] != 0 ? a[at[2]] : b[at[3]]; }
};

template <>
struct kernel<op_code::where> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::each_offset<4>(op_code::where, c,
                           where_at<T>{as<std::int32_t>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), as<T>(c.p[result])}, ctx);
  }
};

template <class T>
struct mask_keep_at {
  const T* x;
  const std::int32_t* mask;
  T* o;
  bool zero_where;
  __device__ void operator()(const std::int64_t* at) const { o[at[0]] = (mask[at[2]] != 0) == zero_where ? T(0) : x[at[1]]; }
};

template <>
struct kernel<op_code::mask_keep> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::each_offset<3>(op_code::mask_keep, c,
                           mask_keep_at<T>{as<T>(c.p[0]), as<std::int32_t>(c.p[1]), as<T>(c.p[result]),
                                           attributes_of<mask_keep_attributes>(c.a).where_zero != 0},
                           ctx);
  }
};

template <class T>
struct dropout_draw {
  double probability;
  T keep;
  __device__ T operator()(T x, const philox_words& w) const { return x * (unit_32(w) < probability ? T(0) : keep); }
};

template <>
struct kernel<op_code::dropout> {
  template <class T>
  static void run(const call& c, context& ctx) {
    using C = computed_in<T>;
    detail::draw<T>(op_code::dropout, c, dropout_draw<C>{c.f, C(1) / static_cast<C>(1 - c.f)}, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

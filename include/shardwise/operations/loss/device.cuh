// SPDX-License-Identifier: Apache-2.0
// Cross entropy on a device: log-sum-exp and likelihoods, classes whole or sharded.
#pragma once

#include <shardwise/runtime/cuda/device/index_guard.cuh>
#include <shardwise/runtime/cuda/device/row_exponentials.cuh>
#include <shardwise/runtime/cuda/device/row_packs.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class T>
struct lse_row {
  using C = computed_in<T>;
  const T* x;
  C* o;
  std::int64_t n, sx;
  bool packs;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    using running = detail::running_exp<C>;
    const C norm = (packs ? running::of_packs(t, x + at[0], n) : running::of_row(t, x + at[0], n, sx)).log_sum();
    if (t.lane() == 0) o[at[1]] = norm;
  }
};

// A rank's part of the log-sum-exp: sum of exp(x - top) over its classes, of which it may have none.
template <class T>
struct exp_sum_row {
  using C = computed_in<T>;
  const T *x, *top;
  C* o;
  std::int64_t n, sx;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    C total = C(0);
    const C most = static_cast<C>(top[at[1]]),
            from = most - most == C(0) ? most : C(0);  // an infinity's differences are none
    for (std::int64_t i = t.lane(); i < n; i += Team::threads)
      total += math<C>::exp(static_cast<C>(x[at[0] + i * sx]) - from);
    total = t.sum(total);
    if (t.lane() == 0) o[at[2]] = total;
  }
};

template <>
struct kernel<op_code::exp_sum> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    each_row(op_code::exp_sum, row_walk(all, last), n,
             exp_sum_row<T>{as<T>(c.p[0]), as<T>(c.p[1]), as<computed_in<T>>(c.p[result]), n, c.l[0].str[last]}, ctx);
  }
};

template <>
struct kernel<op_code::lse> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const walk<2> rows = row_walk(both, last);
    each_row(op_code::lse, rows, n,
             lse_row<T>{as<T>(c.p[0]), as<computed_in<T>>(c.p[result]), n, c.l[0].str[last],
                        n % vector_of<T> == 0 && begins_packs<T>(rows, 0, c.p[0], c.l[0].str[last])},
             ctx);
  }
};

// The classes that a rank has, [first, first + size) of all, and the target that does not count.
struct class_range {
  std::int64_t first, size, classes, ignored;
  bool ignores;

  static class_range of(const call& c, const layout& logits) {
    const int last = logits.rank - 1;
    const auto of = attributes_of<nll_attributes>(c.a);
    return {logits.origin[last], logits.ext[last], logits.global[last], of.ignored, of.ignores != 0};
  }
  __device__ bool counts(std::int64_t id) const { return !ignores || id != ignored; }
  // Position among the own classes; outside 0..size-1 where another rank has it, or none.
  __device__ std::int64_t position(std::int64_t id, const index_guard& guard) const {
    return counts(id) && classes > 0 ? guard.checked(id, classes) - first : -1;
  }
};

namespace detail {

// at: logits, log-sum-exp, target, result; a thread for each row
template <class T>
__global__ void __launch_bounds__(256)
    nll_kernel(const __grid_constant__ strided<4> rows, const T* x, const computed_in<T>* lse, const std::int32_t* target,
               computed_in<T>* out, const class_range own, std::int64_t step, const index_guard guard) {
  for (std::uint32_t r = blockIdx.x * blockDim.x + threadIdx.x; r < rows.count; r += gridDim.x * blockDim.x) {
    std::int64_t at[4];
    rows.offsets(r, at);
    const std::int64_t id = own.position(target[at[2]], guard);
    out[at[3]] =
        id >= 0 && id < own.size ? lse[at[1]] - static_cast<computed_in<T>>(x[at[0] + id * step]) : computed_in<T>(0);
  }
}

}  // namespace detail

template <>
struct kernel<op_code::nll> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    each_piece(row_walk(all, last), [&](const walk<4>& w, const std::int64_t* base) {
      const strided<4> s = make_strided(w, base);
      launch(op_code::nll, &detail::nll_kernel<T>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s,
             static_cast<const T*>(c.p[0]), static_cast<const computed_in<T>*>(c.p[1]),
             static_cast<const std::int32_t*>(c.p[2]), as<computed_in<T>>(c.p[result]), class_range::of(c, c.l[0]),
             c.l[0].str[last], index_guard{ctx.fault, c.node});
    });
  }
};

// operands: cotangent, logits, log-sum-exp, target: dy (softmax - onehot). An element is read before it is written by one thread, so
// the result may lie where the logits do.
template <class T>
struct nll_dx_row {
  using C = computed_in<T>;
  const C *dy, *lse;
  const T* x;
  const std::int32_t* target;
  T* o;
  class_range own;
  std::int64_t sx;
  index_guard guard;
  bool packs;

  // at: logits, cotangent, log-sum-exp, target, result
  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const C g = dy[at[1]], norm = lse[at[2]];
    std::int64_t id = target[at[3]];
    const bool counts = own.counts(id);
    // one lane reports a bad target; all go on with class 0
    if (counts && (id < 0 || id >= own.classes)) id = t.lane() == 0 ? guard.checked(id, own.classes) : 0;
    id = counts ? id - own.first : -1;
    const auto slope = [&](std::int64_t i, T logit) {
      if (!counts) return T(0);
      const C v = g * math<C>::exp(static_cast<C>(logit) - norm);
      return static_cast<T>(i == id ? v - g : v);
    };
    const T* const in = x + at[0];
    T* const out = o + at[4];
    if (!packs) {
      for (std::int64_t i = t.lane(); i < own.size; i += Team::threads) out[i] = slope(i, in[i * sx]);
      return;
    }
    constexpr int V = vector_of<T>;
    if (!counts) {  // zeros, without a look at the logits
      for (std::int64_t i = t.lane() * V; i < own.size; i += Team::threads * V)
        *reinterpret_cast<pack<T, V>*>(out + i) = pack<T, V>{};
      return;
    }
#pragma unroll 2
    for (std::int64_t i = t.lane() * V; i < own.size; i += Team::threads * V) {
      pack<T, V> v = *reinterpret_cast<const pack<T, V>*>(in + i);
      const int target_at = id >= i && id - i < V ? static_cast<int>(id - i) : -1;  // one comparison of 64 bits a pack
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const C s = g * math<C>::exp(static_cast<C>(v.v[k]) - norm);
        v.v[k] = static_cast<T>(k == target_at ? s - g : s);
      }
      *reinterpret_cast<pack<T, V>*>(out + i) = v;
    }
  }
};

template <>
struct kernel<op_code::nll_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[5] = {&c.l[1], &c.l[0], &c.l[2], &c.l[3], &c.l[result]};
    const int last = c.l[1].rank - 1;
    const std::int64_t n = c.l[1].ext[last];
    const walk<5> rows = row_walk(all, last);
    const bool packs = n % vector_of<T> == 0 && begins_packs<T>(rows, 0, c.p[1], c.l[1].str[last]) &&
                       begins_packs<T>(rows, 4, c.p[result], c.l[result].str[last]);
    each_row(op_code::nll_dx, rows, n,
             nll_dx_row<T>{as<computed_in<T>>(c.p[0]), as<computed_in<T>>(c.p[2]), as<T>(c.p[1]),
                           static_cast<const std::int32_t*>(c.p[3]), as<T>(c.p[result]), class_range::of(c, c.l[1]),
                           c.l[1].str[last], index_guard{ctx.fault, c.node}, packs},
             ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// The loss of rows of logits and its adjoint in one kernel. A row that fits shared memory and lies in packs is read from memory once, others
// twice, the second time mostly from the cache.
#pragma once

#include <cstdint>

#include <shardwise/operations/loss/device.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Two blocks share a multiprocessor where two rows fit it: one's sums fill the time in which the other's row is on its way. A block has
// some four packs of a row for each of its threads, or more.
inline constexpr std::int64_t loss_block_bytes =
    4096;  // of shared memory that a block takes beside its row, and what CUDA keeps

// exp(v); of elements of two bytes, whose products are rounded to 8 or 11 bits, by the instruction for powers of two.
template <class T, class C>
__device__ C loss_exp(C v) {
  if constexpr (sizeof(T) == 2) return exp2f(v * 1.4426950408889634F);
  else return math<C>::exp(v);
}

// What a row's target is: its position among the classes, -1 of a row that does not count. A bad one is reported by one lane; all go on
// with class 0.
__device__ inline std::int64_t loss_target(std::int64_t id, const class_range& own, bool reports, const index_guard& guard) {
  if (!own.counts(id) || own.classes == 0) return -1;
  if (id >= 0 && id < own.classes) return id;
  if (reports) guard.checked(id, own.classes);
  return 0;
}

// at: logits, cotangent, target, loss, result. The result may lie where the logits do: a block writes a row when all of it is read.
template <class T, int Threads>
__global__ void __launch_bounds__(Threads)
    loss_rows_kernel(const __grid_constant__ strided<5> rows, const computed_in<T>* dy, const T* x,
                     const std::int32_t* target, computed_in<T>* loss, T* o, const class_range own,
                     const index_guard guard) {
  using C = computed_in<T>;
  constexpr int V = vector_of<T>;
  extern __shared__ __align__(16) unsigned char held[];
  pack<T, V>* const row = reinterpret_cast<pack<T, V>*>(held);
  const team<Threads> t;
  const int packs = static_cast<int>(own.size / V);
  for (std::uint32_t r = blockIdx.x; r < rows.count; r += gridDim.x) {
    std::int64_t at[5];
    rows.offsets(r, at);
    const pack<T, V>* const in = reinterpret_cast<const pack<T, V>*>(x + at[0]);
    pack<T, V>* const out = reinterpret_cast<pack<T, V>*>(o + at[4]);
    const std::int64_t id = loss_target(target[at[2]], own, t.lane() == 0, guard);
    const C g = dy[at[1]], aimed = id < 0 ? C(0) : static_cast<C>(x[at[0] + id]);
    if (id < 0) {  // zeros, without a look at the logits
      for (int p = t.lane(); p < packs; p += Threads) out[p] = pack<T, V>{};
      if (t.lane() == 0) loss[at[3]] = C(0);
      continue;
    }
    C top = -static_cast<C>(INFINITY);
#pragma unroll 4
    for (int p = t.lane(); p < packs; p += Threads) {
      const pack<T, V> v = in[p];
      row[p] = v;  // which this thread alone reads
#pragma unroll
      for (int k = 0; k < V; ++k)
        if (static_cast<C>(v.v[k]) > top) top = static_cast<C>(v.v[k]);
    }
    top = t.max(top);
    C total = C(0);
#pragma unroll 2
    for (int p = t.lane(); p < packs; p += Threads) {
      pack<T, V> v = row[p];
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const C e = static_cast<C>(v.v[k]) == top
                        ? C(1)
                        : loss_exp<T>(static_cast<C>(v.v[k]) - top);  // infinities have no difference
        total += e;
        if constexpr (sizeof(T) != 2) v.v[k] = static_cast<T>(e);
      }
      if constexpr (sizeof(T) != 2) row[p] = v;
    }
    total = t.sum(total);
    const C norm = top + math<C>::log(total);
    if (t.lane() == 0) loss[at[3]] = norm - aimed;
    const bool finite = norm - norm == C(0);
    const C share = g / total;
#pragma unroll 2
    for (int p = t.lane(); p < packs; p += Threads) {
      pack<T, V> v = row[p];
      const std::int64_t first = std::int64_t{p} * V;
      const int target_at = id >= first && id - first < V ? static_cast<int>(id - first) : -1;
#pragma unroll
      for (int k = 0; k < V; ++k) {
        C s;
        if constexpr (sizeof(T) == 2) s = g * loss_exp<T>(static_cast<C>(v.v[k]) - norm);
        else if (finite) s = static_cast<C>(v.v[k]) * share;
        else s = norm != norm || static_cast<C>(v.v[k]) == C(1) ? norm - norm : g * C(0);  // what exp(x - norm) is
        v.v[k] = static_cast<T>(k == target_at ? s - g : s);
      }
      out[p] = v;
    }
  }
}

template <class T>
struct loss_row {
  using C = computed_in<T>;
  const C* dy;
  const T* x;
  const std::int32_t* target;
  C* loss;
  T* o;
  class_range own;
  std::int64_t sx;
  index_guard guard;
  bool packs;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T* const in = x + at[0];
    T* const out = o + at[4];
    const std::int64_t id = loss_target(target[at[2]], own, t.lane() == 0, guard);
    const C g = dy[at[1]], aimed = id < 0 ? C(0) : static_cast<C>(in[id * sx]);  // before any lane writes
    using running = running_exp<C>;
    const C norm = (packs ? running::of_packs(t, in, own.size) : running::of_row(t, in, own.size, sx)).log_sum();
    if (t.lane() == 0) loss[at[3]] = id < 0 ? C(0) : norm - aimed;
    const auto slope = [&](std::int64_t i, T logit) {
      const C s = g * math<C>::exp(static_cast<C>(logit) - norm);
      return id < 0 ? T(0) : static_cast<T>(i == id ? s - g : s);
    };
    if (!packs) {
      for (std::int64_t i = t.lane(); i < own.size; i += Team::threads) out[i] = slope(i, in[i * sx]);
      return;
    }
    constexpr int V = vector_of<T>;
#pragma unroll 2
    for (std::int64_t i = t.lane() * V; i < own.size; i += Team::threads * V) {
      pack<T, V> v = *reinterpret_cast<const pack<T, V>*>(in + i);
#pragma unroll
      for (int k = 0; k < V; ++k) v.v[k] = slope(i + k, v.v[k]);
      *reinterpret_cast<pack<T, V>*>(out + i) = v;
    }
  }
};

}  // namespace detail

template <>
struct kernel<op_code::nll_dx_loss> {
  template <class T>
  static void run(const call& c, context& ctx) {
    using C = computed_in<T>;
    const layout* const all[5] = {&c.l[1], &c.l[0], &c.l[2], &c.l[3], &c.l[result]};
    const int last = c.l[1].rank - 1;
    const std::int64_t n = c.l[1].ext[last], bytes = n * static_cast<std::int64_t>(sizeof(T));
    const walk<5> rows = row_walk(all, last);
    const class_range own = class_range::of(c, c.l[1]);
    const index_guard guard{ctx.fault, c.node};
    const auto* const target = static_cast<const std::int32_t*>(c.p[2]);
    const bool packs = n % vector_of<T> == 0 && begins_packs<T>(rows, 0, c.p[1], c.l[1].str[last]) &&
                       begins_packs<T>(rows, 4, c.p[result], c.l[result].str[last]);
    const auto by_rows = [&](auto* of_rows, int threads) {
      allow_shared(of_rows, static_cast<int>(bytes));
      const std::int64_t fit = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                               (bytes + detail::loss_block_bytes),
                         most = 2048 / threads;
      const std::int64_t at_once = (fit < 1 ? 1 : fit < most ? fit : most) * std::int64_t{ctx.multiprocessors};
      each_piece(rows, [&](const walk<5>& w, const std::int64_t* base) {
        const strided<5> s = make_strided(w, base);
        const auto blocks = static_cast<unsigned>(s.count < at_once ? s.count : at_once);
        of_rows<<<blocks, static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), ctx.stream>>>(
            s, as<C>(c.p[0]), as<T>(c.p[1]), target, as<C>(c.p[3]), as<T>(c.p[result]), own, guard);
        check_launch(name_of(op_code::nll_dx_loss));
      });
    };
    if (packs && n > short_row &&
        bytes + detail::loss_block_bytes <= device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) {
      if (n / vector_of<T> >= 4 * 1024) by_rows(&detail::loss_rows_kernel<T, 1024>, 1024);
      else by_rows(&detail::loss_rows_kernel<T, 256>, 256);
      return;
    }
    each_row(op_code::nll_dx_loss, rows, n,
             detail::loss_row<T>{as<C>(c.p[0]), as<T>(c.p[1]), target, as<C>(c.p[3]), as<T>(c.p[result]), own,
                                 c.l[1].str[last], guard, packs},
             ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

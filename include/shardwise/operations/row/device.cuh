// SPDX-License-Identifier: Apache-2.0
// Along the last dim on a device: softmax, its logarithm, the largest elements and what stands where they do. Rows are read from
// the device's memory once and again from its caches; none is kept in registers, so a row may have any length. Rows of two-byte
// elements are read as floats, and results are rounded once.
#pragma once

#include <shardwise/runtime/cuda/device/index_guard.cuh>
#include <shardwise/runtime/cuda/device/row_exponentials.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class T>
struct softmax_row {
  const T* x;
  T* o;
  std::int64_t n, sx, first;
  bool causal;

  // at: x, o, query
  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T* const in = x + at[0];
    T* const out = o + at[1];
    const std::int64_t seen = causal ? first + at[2] + 1 : n, visible = seen < n ? seen : n;
    using C = computed_in<T>;
    const auto e = detail::running_exp<C>::of_row(t, in, visible, sx);
    const C inverse = C(1) / e.divisor();
    for (std::int64_t i = t.lane(); i < n; i += Team::threads)
      out[i] = static_cast<T>(i < visible ? math<C>::exp(C(in[i * sx]) - e.top) * inverse : C(0));
  }
};

template <>
struct kernel<op_code::softmax> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout& x = c.l[0];
    const int last = x.rank - 1;
    const bool causal = attributes_of<softmax_attributes>(c.a).causal != 0;
    walk<3> w;  // x, result, position of the query in the block
    for (int d = 0; d < last; ++d) {
      const std::int64_t s[3] = {x.str[d], c.l[result].str[d], causal && d == last - 1 ? 1 : 0};
      w.push(x.ext[d], s);
    }
    w.merge();
    each_row(
        op_code::softmax, w, x.ext[last],
        softmax_row<T>{as<T>(c.p[0]), as<T>(c.p[result]), x.ext[last], x.str[last], causal ? x.origin[last - 1] : 0, causal},
        ctx);
  }
};

// dx = y (dy - sum(dy y)); masked elements have y = 0.
template <class T>
struct softmax_dx_row {
  const T *dy, *y;
  T* o;
  std::int64_t n, sg, sy;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T *const g = dy + at[0], *const p = y + at[1];
    T* const out = o + at[2];
    using C = computed_in<T>;
    C dot = C(0);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) dot += C(g[i * sg]) * C(p[i * sy]);
    dot = t.sum(dot);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) out[i] = static_cast<T>(C(p[i * sy]) * (C(g[i * sg]) - dot));
  }
};

template <>
struct kernel<op_code::softmax_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    each_row(op_code::softmax_dx, row_walk(all, last), n,
             softmax_dx_row<T>{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[result]), n, c.l[0].str[last], c.l[1].str[last]},
             ctx);
  }
};

// (x - top) - log(sum of exp(x - top)), as the host's
template <class T>
struct log_softmax_row {
  const T* x;
  T* o;
  std::int64_t n, sx;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    using C = computed_in<T>;
    const auto e = detail::running_exp<C>::of_row(t, x + at[0], n, sx);
    const C rest = math<C>::log(e.divisor());
    for (std::int64_t i = t.lane(); i < n; i += Team::threads)
      o[at[1] + i] = static_cast<T>((C(x[at[0] + i * sx]) - e.top) - rest);
  }
};

template <>
struct kernel<op_code::log_softmax> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    each_row(op_code::log_softmax, row_walk(both, last), n,
             log_softmax_row<T>{as<T>(c.p[0]), as<T>(c.p[result]), n, c.l[0].str[last]}, ctx);
  }
};

// --- searches -------------------------------------------------------------------------------------------------------

// An element and where it stands; before another one if it is larger (smaller), or equal and stands first. A NaN comes
// before any number, or behind all. Position -1: none.
template <class T>
struct candidate {
  T value;
  std::int64_t position;
};

template <class T>
struct earlier {
  bool smallest, nan_first;

  __device__ bool before(T x, T y) const {
    if (!(x == x)) return nan_first && y == y;
    if (!(y == y)) return !nan_first;
    return smallest ? x < y : y < x;
  }
  __device__ bool precedes(const candidate<T>& a, const candidate<T>& b) const {
    if (b.position < 0 || a.position < 0) return a.position >= 0;
    return before(a.value, b.value) || (!before(b.value, a.value) && a.position < b.position);
  }
  __device__ candidate<T> operator()(const candidate<T>& a, const candidate<T>& b) const { return precedes(b, a) ? b : a; }
};

// K passes over a row: each finds the first of what comes after the one found before.
template <class T>
struct topk_row {
  const T* x;
  std::int32_t* o;
  std::int64_t n, sx, found;
  earlier<computed_in<T>> order;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    candidate<C> last{C(0), -1};
    for (std::int64_t k = 0; k < found; ++k) {
      candidate<C> best{C(0), -1};
      for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
        const candidate<C> c{C(x[at[0] + i * sx]), i};
        if (k == 0 || order.precedes(last, c)) best = order(best, c);
      }
      const std::int64_t position = first_of(t, best);
      last = {C(x[at[0] + position * sx]), position};
      if (t.lane() == 0) o[at[1] + k] = static_cast<std::int32_t>(position);
    }
  }

 private:
  using C = computed_in<T>;

  // The team's: a maximum of values, then the lowest position among its equals, so that lanes exchange plain numbers.
  template <class Team>
  __device__ std::int64_t first_of(const Team& t, const candidate<C>& mine) const {
    const bool any = mine.position >= 0, number = any && mine.value == mine.value;
    // NaNs are in question where they come first and there is one, or last and there is nothing else
    const bool nans = order.nan_first ? t.max(any && !number ? 1 : 0) != 0 : t.max(number ? 1 : 0) == 0;
    bool wins = nans ? any && !number : number;
    if (!nans) {
      const C key = order.smallest ? -mine.value : mine.value;
      const C top = t.max(wins ? key : -static_cast<C>(INFINITY));
      wins = wins && key == top;
    }
    return -t.max(wins ? -mine.position : -n);
  }
};

template <>
struct kernel<op_code::topk> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto of = attributes_of<topk_attributes>(c.a);
    each_row(op_code::topk, row_walk(both, last), n,
             topk_row<T>{as<T>(c.p[0]), as<std::int32_t>(c.p[result]), n, c.l[0].str[last], c.l[result].ext[last],
                         earlier<computed_in<T>>{of.smallest != 0, of.smallest != 1}},
             ctx);
  }
};

template <class T>
struct take_row {
  const T* x;
  const std::int32_t* index;
  T* o;
  std::int64_t n, sx, count, si;
  index_guard guard;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    for (std::int64_t k = t.lane(); k < count; k += Team::threads)
      o[at[2] + k] = n > 0 ? x[at[0] + guard.checked(index[at[1] + k * si], n) * sx] : T(0);
  }
};

template <>
struct kernel<op_code::take> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t count = c.l[1].ext[last];
    each_row(op_code::take, row_walk(all, last), count,
             take_row<T>{as<T>(c.p[0]), as<std::int32_t>(c.p[1]), as<T>(c.p[result]), c.l[0].ext[last], c.l[0].str[last],
                         count, c.l[1].str[last], index_guard{ctx.fault, c.node}},
             ctx);
  }
};

// Each element sums the cotangents of the positions that name it, in their order: nothing is added atomically. Costs
// the row's length times the number of positions, which are few.
template <class T>
struct take_dx_row {
  const T* dy;
  const std::int32_t* index;
  T* o;
  std::int64_t n, sg, count, si;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      computed_in<T> total{};
      for (std::int64_t k = 0; k < count; ++k)
        if (index[at[1] + k * si] == i) total += static_cast<computed_in<T>>(dy[at[0] + k * sg]);
      o[at[2] + i] = static_cast<T>(total);
    }
  }
};

template <>
struct kernel<op_code::take_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[result].ext[last];
    each_row(op_code::take_dx, row_walk(all, last), n,
             take_dx_row<T>{as<T>(c.p[0]), as<std::int32_t>(c.p[1]), as<T>(c.p[result]), n, c.l[0].str[last],
                            c.l[1].ext[last], c.l[1].str[last]},
             ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

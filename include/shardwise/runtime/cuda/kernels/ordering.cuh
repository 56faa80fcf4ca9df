// SPDX-License-Identifier: Apache-2.0
// Largest, smallest and product over dims; searches along the last dim, and what stands at the positions found.
#pragma once

#include <shardwise/runtime/cuda/kernels/index.cuh>
#include <shardwise/runtime/cuda/kernels/sum.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// A NaN stays. Every float is a double, so that folding in double gives the host's bits.
struct max_fold {
  static constexpr double start = -static_cast<double>(INFINITY);
  __device__ double operator()(double a, double b) const { return a < b || !(b == b) ? b : a; }
};
struct min_fold {
  static constexpr double start = static_cast<double>(INFINITY);
  __device__ double operator()(double a, double b) const { return b < a || !(b == b) ? b : a; }
};
struct product_fold {
  static constexpr double start = 1;
  __device__ double operator()(double a, double b) const { return a * b; }
};

namespace detail {

template <class T, class Fold>
void fold_into(op_code op, const call& c, context& ctx) {
  const layout &x = c.l[0], &out = c.l[result];
  walk<2> kept, folded;
  for (int d = 0; d < x.rank; ++d) {
    const bool reduced = (c.a.v[0] >> d) & 1;
    const std::int64_t s[2] = {reduced ? 0 : out.str[d], x.str[d]};
    (reduced ? folded : kept).push(x.ext[d], s);
  }
  kept.merge();
  folded.merge();
  reduce<T, Fold>(op, c, kept, folded, element_value<T, false>{as<T>(c.p[0])}, T(1), ctx);
}

}  // namespace detail

template <>
struct kernel<op_code::amax> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::fold_into<T, max_fold>(op_code::amax, c, ctx);
  }
};
template <>
struct kernel<op_code::amin> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::fold_into<T, min_fold>(op_code::amin, c, ctx);
  }
};
template <>
struct kernel<op_code::prod> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::fold_into<T, product_fold>(op_code::prod, c, ctx);
  }
};

namespace detail {

// kept: cotangent, x, result; folded: x, result. A thread for each product, twice over its elements: the products
// before and after each one are running ones.
template <class T>
__global__ void __launch_bounds__(256)
    prod_dx_kernel(const __grid_constant__ strided<3> kept, const __grid_constant__ strided<2> folded, const T* dy,
                   const T* x, T* out) {
  for (std::uint32_t r = blockIdx.x * blockDim.x + threadIdx.x; r < kept.count; r += gridDim.x * blockDim.x) {
    std::int64_t at[3], off[2];
    kept.offsets(r, at);
    T before = dy[at[0]], after = T(1);
    for (std::uint32_t i = 0; i < folded.count; ++i) {
      folded.offsets(i, off);
      out[at[2] + off[1]] = before;
      before *= x[at[1] + off[0]];
    }
    for (std::uint32_t i = folded.count; i-- > 0;) {
      folded.offsets(i, off);
      out[at[2] + off[1]] *= after;
      after *= x[at[1] + off[0]];
    }
  }
}

}  // namespace detail

template <>
struct kernel<op_code::prod_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &dy = c.l[0], &x = c.l[1], &out = c.l[result];
    walk<3> kept;
    walk<2> folded;
    for (int d = 0; d < x.rank; ++d) {
      const std::int64_t s[3] = {dy.str[d], x.str[d], out.str[d]};
      if ((c.a.v[0] >> d) & 1)
        folded.push(x.ext[d], s + 1);
      else
        kept.push(x.ext[d], s);
    }
    kept.merge();
    folded.merge();
    if (points(folded) == 0) return;
    if (points(folded) >= most_points)
      throw device_error(name_of(op_code::prod_dx),
                         "2^31 or more elements are multiplied; reduce one dim after another");
    const std::int64_t zero[2]{};
    const strided<2> f = make_strided(folded, zero);
    each_piece(kept, [&](const walk<3>& w, const std::int64_t* base) {
      const strided<3> k = make_strided(w, base);
      launch(op_code::prod_dx, &detail::prod_dx_kernel<T>, grid_for((std::int64_t{k.count} + 255) / 256, ctx), 256,
             ctx.stream, k, f, as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[result]));
    });
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
  __device__ candidate<T> operator()(const candidate<T>& a, const candidate<T>& b) const {
    return precedes(b, a) ? b : a;
  }
};

// K passes over a row: each finds the first of what comes after the one found before.
template <class T>
struct topk_row {
  const T* x;
  std::int32_t* o;
  std::int64_t n, sx, found;
  earlier<T> order;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    candidate<T> last{T(0), -1};
    for (std::int64_t k = 0; k < found; ++k) {
      candidate<T> best{T(0), -1};
      for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
        const candidate<T> c{x[at[0] + i * sx], i};
        if (k == 0 || order.precedes(last, c)) best = order(best, c);
      }
      const std::int64_t position = first_of(t, best);
      last = {x[at[0] + position * sx], position};
      if (t.lane() == 0) o[at[1] + k] = static_cast<std::int32_t>(position);
    }
  }

 private:
  // The team's: a maximum of values, then the lowest position among its equals, so that lanes exchange plain numbers.
  template <class Team>
  __device__ std::int64_t first_of(const Team& t, const candidate<T>& mine) const {
    const bool any = mine.position >= 0, number = any && mine.value == mine.value;
    // NaNs are in question where they come first and there is one, or last and there is nothing else
    const bool nans = order.nan_first ? t.max(any && !number ? 1 : 0) != 0 : t.max(number ? 1 : 0) == 0;
    bool wins = nans ? any && !number : number;
    if (!nans) {
      const T key = order.smallest ? -mine.value : mine.value;
      const T top = t.max(wins ? key : -static_cast<T>(INFINITY));
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
    each_row(op_code::topk, row_walk(both, last), n,
             topk_row<T>{as<T>(c.p[0]), as<std::int32_t>(c.p[result]), n, c.l[0].str[last], c.l[result].ext[last],
                         earlier<T>{c.a.v[1] != 0, c.a.v[1] != 1}},
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
             take_row<T>{as<T>(c.p[0]), as<std::int32_t>(c.p[1]), as<T>(c.p[result]), c.l[0].ext[last],
                         c.l[0].str[last], count, c.l[1].str[last], index_guard{ctx.fault, c.node}},
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
      T total = T(0);
      for (std::int64_t k = 0; k < count; ++k)
        if (index[at[1] + k * si] == i) total += dy[at[0] + k * sg];
      o[at[2] + i] = total;
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
}  // namespace shardwise::cuda

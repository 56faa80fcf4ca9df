// SPDX-License-Identifier: Apache-2.0
// Layer norm and rms norm on a device: statistics, results and adjoints, one by one and, but for device_backward.cuh, in one
// kernel.
#pragma once

#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/device/reduce.cuh>
#include <shardwise/operations/norm/device_backward.cuh>
#include <shardwise/operations/norm/device_packs.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Layer norm: (mean, 1 / sqrt(variance + eps)); rms norm: (0, 1 / sqrt(mean square + eps)); sums in double, as the
// host's.
template <class T>
struct norm_statistics {
  using C = computed_in<T>;
  std::int64_t n, sx;
  double eps;
  bool rms;
  struct values {
    C mean, rstd;
  };

  template <class Team>
  __device__ values of_row(const Team& t, const T* in) const {
    double mean = 0, square = 0;
    if (!rms) {
      for (std::int64_t i = t.lane(); i < n; i += Team::threads) mean += static_cast<double>(in[i * sx]);
      mean = t.sum(mean) / static_cast<double>(n);
    }
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      const double d = static_cast<double>(in[i * sx]) - mean;
      square += d * d;
    }
    square = t.sum(square);
    return {static_cast<C>(mean), static_cast<C>(1 / math<double>::sqrt(square / static_cast<double>(n) + eps))};
  }
};

template <class T>
struct norm_stats_row {
  norm_statistics<T> statistics;
  const T* x;
  computed_in<T>* o;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const typename norm_statistics<T>::values s = statistics.of_row(t, x + at[0]);
    if (t.lane() != 0) return;
    o[at[1]] = s.mean;
    o[at[1] + 1] = s.rstd;
  }
};

template <>
struct kernel<op_code::norm_stats> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    each_row(op_code::norm_stats, row_walk(both, last), n,
             norm_stats_row<T>{{n, c.l[0].str[last], c.f, attributes_of<norm_attributes>(c.a).rms == 1},
                               as<T>(c.p[0]),
                               as<computed_in<T>>(c.p[result])},
             ctx);
  }
};

// (x - mean) * rstd * w (+ b): elementwise, statistics broadcast along rows and weights across them.
template <class C>
struct norm_apply_functor {
  __device__ C operator()(C x, C mean, C rstd, C w) const { return (x - mean) * rstd * w; }
  __device__ C operator()(C x, C mean, C rstd, C w, C b) const { return (x - mean) * rstd * w + b; }
};

// Of elements of two bytes, whose statistics are of another type; offsets: result, x, mean, rstd, w, b.
template <class T>
struct norm_apply_at {
  T* o;
  const T *x, *w, *b;  // b: null without one
  const computed_in<T>* stats;
  std::int64_t rstd;
  __device__ void operator()(const std::int64_t* at) const {
    using C = computed_in<T>;
    const C v = (static_cast<C>(x[at[1]]) - stats[at[2]]) * stats[at[2] + rstd] * static_cast<C>(w[at[4]]);
    o[at[0]] = static_cast<T>(b ? v + static_cast<C>(b[at[5]]) : v);
  }
};

template <>
struct kernel<op_code::norm_apply> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const bool bias = c.inputs > 3;
    const int last = c.l[0].rank - 1;
    if constexpr (sizeof(T) == 2) {
      if (bias) apply_wide<T>(c, operands<6>(c, last), ctx);
      else apply_wide<T>(c, operands<5>(c, last), ctx);
    } else {
      apply<T>(c, bias, last, ctx);
    }
  }

 private:
  template <class T>
  static void apply(const call& c, bool bias, int last, context& ctx) {
    T* const stats = as<T>(c.p[1]);
    T* const rstd = stats + c.l[1].str[last];
    if (bias)
      map(op_code::norm_apply, operands<6>(c, last),
          pointers<T, 6>{{as<T>(c.p[result]), as<T>(c.p[0]), stats, rstd, as<T>(c.p[2]), as<T>(c.p[3])}},
          norm_apply_functor<T>{}, ctx);
    else
      map(op_code::norm_apply, operands<5>(c, last),
          pointers<T, 5>{{as<T>(c.p[result]), as<T>(c.p[0]), stats, rstd, as<T>(c.p[2])}}, norm_apply_functor<T>{}, ctx);
  }

  template <class T, int K>
  static void apply_wide(const call& c, const walk<K>& whole, context& ctx) {
    const norm_apply_at<T> apply{as<T>(c.p[result]),
                                 as<T>(c.p[0]),
                                 as<T>(c.p[2]),
                                 K > 5 ? as<T>(c.p[3]) : nullptr,
                                 as<computed_in<T>>(c.p[1]),
                                 c.l[1].str[c.l[0].rank - 1]};
    launch_points(op_code::norm_apply, whole, apply, ctx);
  }
  // result, x, mean, rstd, w [, b]
  template <int K>
  static walk<K> operands(const call& c, int last) {
    walk<K> w;
    for (int d = 0; d <= last; ++d) {
      const std::int64_t stat = d < last ? c.l[1].str[d] : 0;
      std::int64_t s[K] = {c.l[result].str[d], c.l[0].str[d], stat, stat, d < last ? 0 : c.l[2].str[0]};
      if constexpr (K > 5) s[5] = d < last ? 0 : c.l[3].str[0];
      w.push(c.l[0].ext[d], s);
    }
    w.merge();
    return w;
  }
};

// norm_stats and norm_apply in one launch; `stats` is null where nobody else needs them.
template <class T>
struct norm_row {
  norm_statistics<T> statistics;
  const T *x, *w, *b;
  computed_in<T>* stats;
  T* o;
  std::int64_t sw, sb;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    using C = computed_in<T>;
    const T* const in = x + at[0];
    T* const out = o + at[1];
    const std::int64_t n = statistics.n, sx = statistics.sx;
    const typename norm_statistics<T>::values s = statistics.of_row(t, in);
    if (stats && t.lane() == 0) {
      stats[at[2]] = s.mean;
      stats[at[2] + 1] = s.rstd;
    }
    const norm_apply_functor<C> apply;
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      const C v = static_cast<C>(in[i * sx]), scale = static_cast<C>(w[i * sw]);
      out[i] =
          static_cast<T>(b ? apply(v, s.mean, s.rstd, scale, static_cast<C>(b[i * sb])) : apply(v, s.mean, s.rstd, scale));
    }
  }
};

template <>
struct kernel<op_code::norm> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const auto of = attributes_of<norm_attributes>(c.a);
    const bool keeps = of.keeps_statistics != 0;
    const int pairs = c.inputs - 1, weights = c.inputs - (keeps ? 1 : 0);
    const bool bias = weights > 2;
    const layout* const all[3] = {&c.l[0], &c.l[result], &c.l[keeps ? pairs : result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last], sw = c.l[1].str[0], sb = bias ? c.l[2].str[0] : 0;
    const walk<3> rows = row_walk(all, last);
    const T *const x = as<T>(c.p[0]), *const w = as<T>(c.p[1]), *const b = bias ? as<T>(c.p[2]) : nullptr;
    computed_in<T>* const stats = keeps ? as<computed_in<T>>(c.p[pairs]) : nullptr;
    T* const o = as<T>(c.p[result]);
    const bool packs = fits_packs<T>(n) && begins_packs<T>(rows, 0, x, s) &&
                       begins_packs<T>(rows, 1, o, c.l[result].str[last]) && sw == 1 &&
                       reinterpret_cast<std::uintptr_t>(w) % 16 == 0 &&
                       (!b || (sb == 1 && reinterpret_cast<std::uintptr_t>(b) % 16 == 0));
    if (packs && n <= few_row_packs * warp_threads * vector_of<T>)
      return each_row_of_warps(op_code::norm, rows,
                               detail::norm_packs<T, few_row_packs>{n, c.f, of.rms == 1, x, w, b, stats, o}, ctx);
    if (packs)
      return each_row_of_warps(op_code::norm, rows,
                               detail::norm_packs<T, most_row_packs>{n, c.f, of.rms == 1, x, w, b, stats, o}, ctx);
    each_row(op_code::norm, rows, n, norm_row<T>{{n, s, c.f, of.rms == 1}, x, w, b, stats, o, sw, sb}, ctx);
  }
};

// With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)); rms norm has no mean(g).
template <class T, class Then>
struct norm_dx_row {
  using C = computed_in<T>;
  const T *dy, *x, *w;
  const C* stats;
  T* o;
  std::int64_t n, sg, sx, ss, sw;
  bool rms;
  Then then;
  std::int64_t step[Then::operands + 1];  // of the expression's operands along the row

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T *const g = dy + at[0], *const in = x + at[1];
    const C mean = stats[at[2]], rstd = stats[at[2] + ss];
    T* const out = o + at[3];
    C g1 = C(0), gh = C(0);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      const C v = static_cast<C>(g[i * sg]) * static_cast<C>(w[i * sw]);
      g1 += v;
      gh += v * ((static_cast<C>(in[i * sx]) - mean) * rstd);
    }
    g1 = rms ? C(0) : t.sum(g1) / static_cast<C>(n);
    gh = t.sum(gh) / static_cast<C>(n);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      std::int64_t off[Then::operands + 1];
#pragma unroll
      for (int j = 0; j < Then::operands; ++j) off[j] = at[4 + j] + i * step[j];
      const C v = static_cast<C>(g[i * sg]) * static_cast<C>(w[i * sw]), h = (static_cast<C>(in[i * sx]) - mean) * rstd;
      out[i] = then(static_cast<T>(rstd * (v - g1 - h * gh)), off);
    }
  }
};

template <>
struct kernel<op_code::norm_dx> {
  template <class T>
  static void run(const call& c, context& ctx) {
    launch_rows<T>(c, no_epilogue{}, ctx);
  }
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    launch_rows<T>(c, epilogue_of<T, E>(c), ctx);
  }

 private:
  // dy, x, statistics, result, the expression's operands
  template <class T, class Then>
  static void launch_rows(const call& c, const Then& then, context& ctx) {
    constexpr int K = 4 + Then::operands;
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    walk<K> w;
    for (int d = 0; d < last; ++d) {
      std::int64_t s[K]{};
      for (int k = 0; k < 4; ++k) s[k] = all[k]->str[d];
      for (int j = 0; j < Then::operands; ++j) s[4 + j] = epilogue_stride(c, j, d);
      w.push(c.l[0].ext[d], s);
    }
    w.merge();
    const bool packs = fits_packs<T>(n) && begins_packs<T>(w, 0, c.p[0], c.l[0].str[last]) &&
                       begins_packs<T>(w, 1, c.p[1], c.l[1].str[last]) &&
                       begins_packs<T>(w, 3, c.p[result], c.l[result].str[last]) && c.l[3].str[0] == 1 &&
                       reinterpret_cast<std::uintptr_t>(c.p[3]) % 16 == 0;
    if (packs && n <= few_row_packs * warp_threads * vector_of<T>)
      return each_row_of_warps(op_code::norm_dx, w, in_packs<T, few_row_packs>(c, then, last), ctx);
    if (packs) return each_row_of_warps(op_code::norm_dx, w, in_packs<T, most_row_packs>(c, then, last), ctx);
    norm_dx_row<T, Then> row{as<T>(c.p[0]),
                             as<T>(c.p[1]),
                             as<T>(c.p[3]),
                             as<computed_in<T>>(c.p[2]),
                             as<T>(c.p[result]),
                             n,
                             c.l[0].str[last],
                             c.l[1].str[last],
                             c.l[2].str[last],
                             c.l[3].str[0],
                             attributes_of<norm_attributes>(c.a).rms == 1,
                             then,
                             {}};
    for (int j = 0; j < Then::operands; ++j) row.step[j] = epilogue_stride(c, j, last);
    each_row(op_code::norm_dx, w, n, row, ctx);
  }
  template <class T, int Packs, class Then>
  static detail::norm_dx_packs<T, Packs, Then> in_packs(const call& c, const Then& then, int last) {
    detail::norm_dx_packs<T, Packs, Then> row{as<T>(c.p[0]),
                                              as<T>(c.p[1]),
                                              as<T>(c.p[3]),
                                              as<computed_in<T>>(c.p[2]),
                                              as<T>(c.p[result]),
                                              c.l[0].ext[last],
                                              c.l[2].str[last],
                                              attributes_of<norm_attributes>(c.a).rms == 1,
                                              then,
                                              {}};
    for (int j = 0; j < Then::operands; ++j) row.step[j] = epilogue_stride(c, j, last);
    return row;
  }
};

template <class T>
struct norm_dw_value {
  using C = computed_in<T>;
  const T *dy, *x;
  const C* stats;
  std::int64_t ss;
  __device__ double operator()(const std::int64_t* off) const {
    const C h = (static_cast<C>(x[off[2]]) - stats[off[3]]) * stats[off[3] + ss];
    return static_cast<double>(static_cast<C>(dy[off[1]]) * h);
  }
};

namespace detail {

// Walks of dw = sum over rows of dy (x - mean) rstd: result, dy, x, statistics.
inline void norm_dw_walks(const call& c, walk<4>& kept, walk<4>& summed) {
  const layout &dy = c.l[0], &x = c.l[1], &stats = c.l[2];
  const int last = dy.rank - 1;
  for (int d = 0; d <= last; ++d) {
    const std::int64_t s[4] = {d == last ? 1 : 0, dy.str[d], x.str[d], d == last ? 0 : stats.str[d]};
    (d == last ? kept : summed).push(dy.ext[d], s);
  }
  kept.merge();
  summed.merge();
}
template <class T>
norm_dw_value<T> norm_dw_value_of(const call& c) {
  return {as<T>(c.p[0]), as<T>(c.p[1]), as<computed_in<T>>(c.p[2]), c.l[2].str[c.l[0].rank - 1]};
}

}  // namespace detail

template <>
struct kernel<op_code::norm_dw> {
  template <class T>
  static void run(const call& c, context& ctx) {
    if (detail::run_norm_columns<T, 1>(op_code::norm_dw, c, as<T>(c.p[result]), nullptr, ctx)) return;
    walk<4> kept, summed;
    detail::norm_dw_walks(c, kept, summed);
    detail::reduce<T>(op_code::norm_dw, c, kept, summed, detail::norm_dw_value_of<T>(c), T(1), ctx);
  }
};

namespace detail {

// The weight's and the bias's sum from one reading of dy.
template <class T>
struct norm_dw_db_value {
  norm_dw_value<T> dw;
  __device__ two_sums operator()(const std::int64_t* off) const { return {dw(off), static_cast<double>(dw.dy[off[1]])}; }
};
template <class T>
struct store_both {
  T *dw, *db;
  __device__ void operator()(const std::int64_t* at, const two_sums& total) const {
    dw[at[0]] = static_cast<T>(total.a);
    db[at[0]] = static_cast<T>(total.b);
  }
};

}  // namespace detail

// norm_dw, to operand 3, and the sum of dy over all dims but the last.
template <>
struct kernel<op_code::norm_dw_db> {
  template <class T>
  static void run(const call& c, context& ctx) {
    if (detail::run_norm_columns<T, 2>(op_code::norm_dw_db, c, as<T>(c.p[3]), as<T>(c.p[result]), ctx)) return;
    walk<4> kept, summed;
    detail::norm_dw_walks(c, kept, summed);
    detail::reduce_to<sum_fold, two_sums>(op_code::norm_dw_db, c, kept, summed,
                                          detail::norm_dw_db_value<T>{detail::norm_dw_value_of<T>(c)},
                                          detail::store_both<T>{as<T>(c.p[3]), as<T>(c.p[result])}, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

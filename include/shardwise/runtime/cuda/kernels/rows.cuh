// SPDX-License-Identifier: Apache-2.0
// Kernels along the last dim: softmax, norms, log-sum-exp, and their adjoints. Rows are read from the device's memory
// once and again from its caches; none is kept in registers, so a row may have any length.
#pragma once

#include <shardwise/runtime/cuda/kernels/epilogue.cuh>
#include <shardwise/runtime/cuda/kernels/pointwise.cuh>
#include <shardwise/runtime/cuda/kernels/team.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Largest element and sum of exp(x - largest), in one pass: the sum is rescaled whenever a larger element comes.
template <class T>
struct running_exp {
  T top = -static_cast<T>(INFINITY), total = T(0);

  __device__ void add(T x) {
    if (x > top) {
      total = total * math<T>::exp(top - x) + T(1);
      top = x;
    } else {
      total += x == top ? T(1) : math<T>::exp(x - top);  // equal: infinities have no difference
    }
  }
  // Of a row of n elements `step` apart: all lanes call it and receive it.
  template <class Team>
  static __device__ running_exp of_row(const Team& t, const T* x, std::int64_t n, std::int64_t step) {
    running_exp e;
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) e.add(x[i * step]);
    return e.of_team(t);
  }
  __device__ T log_sum() const { return top + math<T>::log(total); }
  // The sum of exp(x - top) that softmax divides by: beside infinity, whose differences are no numbers, none.
  __device__ T divisor() const { return top == static_cast<T>(INFINITY) ? top - top : total; }

 private:
  // A lane without elements adds nothing.
  template <class Team>
  __device__ running_exp of_team(const Team& t) const {
    running_exp r;
    r.top = t.max(top);
    r.total = t.sum(top == r.top ? total : total * math<T>::exp(top - r.top));
    return r;
  }
};

}  // namespace detail

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
    const auto e = detail::running_exp<T>::of_row(t, in, visible, sx);
    const T inverse = T(1) / e.divisor();
    for (std::int64_t i = t.lane(); i < n; i += Team::threads)
      out[i] = i < visible ? math<T>::exp(in[i * sx] - e.top) * inverse : T(0);
  }
};

template <>
struct kernel<op_code::softmax> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout& x = c.l[0];
    const int last = x.rank - 1;
    const bool causal = c.a.v[0] != 0;
    walk<3> w;  // x, result, position of the query in the block
    for (int d = 0; d < last; ++d) {
      const std::int64_t s[3] = {x.str[d], c.l[result].str[d], causal && d == last - 1 ? 1 : 0};
      w.push(x.ext[d], s);
    }
    w.merge();
    each_row(op_code::softmax, w, x.ext[last],
             softmax_row<T>{as<T>(c.p[0]), as<T>(c.p[result]), x.ext[last], x.str[last],
                            causal ? x.origin[last - 1] : 0, causal},
             ctx);
  }
};

// dx = y (dy - sum(dy y)); masked elements have y = 0.
template <class T>
struct softmax_bwd_row {
  const T *dy, *y;
  T* o;
  std::int64_t n, sg, sy;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T *const g = dy + at[0], *const p = y + at[1];
    T* const out = o + at[2];
    T dot = T(0);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) dot += g[i * sg] * p[i * sy];
    dot = t.sum(dot);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) out[i] = p[i * sy] * (g[i * sg] - dot);
  }
};

template <>
struct kernel<op_code::softmax_bwd> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    each_row(
        op_code::softmax_bwd, row_walk(all, last), n,
        softmax_bwd_row<T>{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[result]), n, c.l[0].str[last], c.l[1].str[last]},
        ctx);
  }
};

// Layer norm: (mean, 1 / sqrt(variance + eps)); rms norm: (0, 1 / sqrt(mean square + eps)); sums in double, as the
// host's.
template <class T>
struct norm_statistics {
  std::int64_t n, sx;
  double eps;
  bool rms;
  struct values {
    T mean, rstd;
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
    return {static_cast<T>(mean), static_cast<T>(1 / math<double>::sqrt(square / static_cast<double>(n) + eps))};
  }
};

template <class T>
struct norm_stats_row {
  norm_statistics<T> statistics;
  const T* x;
  T* o;

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
             norm_stats_row<T>{{n, c.l[0].str[last], c.f, c.a.v[0] == 1}, as<T>(c.p[0]), as<T>(c.p[result])}, ctx);
  }
};

// (x - mean) * rstd * w (+ b): elementwise, statistics broadcast along rows and weights across them.
template <class T>
struct norm_apply_functor {
  __device__ T operator()(T x, T mean, T rstd, T w) const { return (x - mean) * rstd * w; }
  __device__ T operator()(T x, T mean, T rstd, T w, T b) const { return (x - mean) * rstd * w + b; }
};

template <>
struct kernel<op_code::norm_apply> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const bool bias = c.inputs > 3;
    const int last = c.l[0].rank - 1;
    T* const stats = as<T>(c.p[1]);
    T* const rstd = stats + c.l[1].str[last];
    if (bias)
      map(op_code::norm_apply, operands<6>(c, last),
          pointers<T, 6>{{as<T>(c.p[result]), as<T>(c.p[0]), stats, rstd, as<T>(c.p[2]), as<T>(c.p[3])}},
          norm_apply_functor<T>{}, ctx);
    else
      map(op_code::norm_apply, operands<5>(c, last),
          pointers<T, 5>{{as<T>(c.p[result]), as<T>(c.p[0]), stats, rstd, as<T>(c.p[2])}}, norm_apply_functor<T>{},
          ctx);
  }

 private:
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
  T *stats, *o;
  std::int64_t sw, sb;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T* const in = x + at[0];
    T* const out = o + at[1];
    const std::int64_t n = statistics.n, sx = statistics.sx;
    const typename norm_statistics<T>::values s = statistics.of_row(t, in);
    if (stats && t.lane() == 0) {
      stats[at[2]] = s.mean;
      stats[at[2] + 1] = s.rstd;
    }
    const norm_apply_functor<T> apply;
    for (std::int64_t i = t.lane(); i < n; i += Team::threads)
      out[i] = b ? apply(in[i * sx], s.mean, s.rstd, w[i * sw], b[i * sb]) : apply(in[i * sx], s.mean, s.rstd, w[i * sw]);
  }
};

template <>
struct kernel<op_code::norm> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const bool keeps = c.a.v[2] != 0;
    const int pairs = c.inputs - 1, weights = c.inputs - (keeps ? 1 : 0);
    const bool bias = weights > 2;
    const layout* const all[3] = {&c.l[0], &c.l[result], &c.l[keeps ? pairs : result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row(op_code::norm, row_walk(all, last), n,
             norm_row<T>{{n, s, c.f, c.a.v[0] == 1},
                         as<T>(c.p[0]),
                         as<T>(c.p[1]),
                         bias ? as<T>(c.p[2]) : nullptr,
                         keeps ? as<T>(c.p[pairs]) : nullptr,
                         as<T>(c.p[result]),
                         c.l[1].str[0],
                         bias ? c.l[2].str[0] : 0},
             ctx);
  }
};

// With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)); rms norm has no mean(g).
template <class T, class Then>
struct norm_dx_row {
  const T *dy, *x, *stats, *w;
  T* o;
  std::int64_t n, sg, sx, ss, sw;
  bool rms;
  Then then;
  std::int64_t step[Then::operands + 1];  // of the expression's operands along the row

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T *const g = dy + at[0], *const in = x + at[1];
    const T mean = stats[at[2]], rstd = stats[at[2] + ss];
    T* const out = o + at[3];
    T g1 = T(0), gh = T(0);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      const T v = g[i * sg] * w[i * sw];
      g1 += v;
      gh += v * ((in[i * sx] - mean) * rstd);
    }
    g1 = rms ? T(0) : t.sum(g1) / static_cast<T>(n);
    gh = t.sum(gh) / static_cast<T>(n);
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) {
      std::int64_t off[Then::operands + 1];
#pragma unroll
      for (int j = 0; j < Then::operands; ++j) off[j] = at[4 + j] + i * step[j];
      out[i] = then(rstd * (g[i * sg] * w[i * sw] - g1 - (in[i * sx] - mean) * rstd * gh), off);
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
    norm_dx_row<T, Then> row{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), as<T>(c.p[3]), as<T>(c.p[result]), n, c.l[0].str[last],
                             c.l[1].str[last], c.l[2].str[last], c.l[3].str[0], c.a.v[0] == 1, then, {}};
    for (int j = 0; j < Then::operands; ++j) row.step[j] = epilogue_stride(c, j, last);
    walk<K> w;
    for (int d = 0; d < last; ++d) {
      std::int64_t s[K]{};
      for (int k = 0; k < 4; ++k) s[k] = all[k]->str[d];
      for (int j = 0; j < Then::operands; ++j) s[4 + j] = epilogue_stride(c, j, d);
      w.push(c.l[0].ext[d], s);
    }
    w.merge();
    each_row(op_code::norm_dx, w, n, row, ctx);
  }
};

template <class T>
struct lse_row {
  const T* x;
  T* o;
  std::int64_t n, sx;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    const T norm = detail::running_exp<T>::of_row(t, x + at[0], n, sx).log_sum();
    if (t.lane() == 0) o[at[1]] = norm;
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
    const auto e = detail::running_exp<T>::of_row(t, x + at[0], n, sx);
    const T rest = math<T>::log(e.divisor());
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) o[at[1] + i] = (x[at[0] + i * sx] - e.top) - rest;
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

// A rank's part of the log-sum-exp: sum of exp(x - top) over its classes, of which it may have none.
template <class T>
struct exp_sum_row {
  const T *x, *top;
  T* o;
  std::int64_t n, sx;

  template <class Team>
  __device__ void operator()(const Team& t, const std::int64_t* at) const {
    T total = T(0);
    const T most = top[at[1]], from = most - most == T(0) ? most : T(0);  // an infinity's differences are no numbers
    for (std::int64_t i = t.lane(); i < n; i += Team::threads) total += math<T>::exp(x[at[0] + i * sx] - from);
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
             exp_sum_row<T>{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[result]), n, c.l[0].str[last]}, ctx);
  }
};

template <>
struct kernel<op_code::lse> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    each_row(op_code::lse, row_walk(both, last), n, lse_row<T>{as<T>(c.p[0]), as<T>(c.p[result]), n, c.l[0].str[last]},
             ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::cuda

// SPDX-License-Identifier: Apache-2.0
// Layer norm and rms norm on the host: statistics, results and adjoints, one by one and in one kernel.
#pragma once

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/runtime/host/summation.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// One row of n elements, s apart. Layer norm: (mean, 1 / sqrt(variance + eps)); rms norm: (0, 1 / sqrt(mean square +
// eps)).
template <class T, class S>
constexpr void row_stats(const T* x, std::int64_t n, S s, double epsilon, bool rms, T* o) {
  using acc = typename math<T>::accumulator;
  const acc count = math<acc>::from_count(n), eps = math<acc>::from(epsilon);
  const acc mean = rms ? acc(0) : sum_of(x, n, s) / count;
  const acc square = sum_terms<T>(n, [=](std::int64_t i) {
    const acc d = static_cast<acc>(x[i * s]) - mean;
    return d * d;
  });
  o[0] = static_cast<T>(mean);
  o[1] = static_cast<T>(acc(1) / math<acc>::sqrt(square / count + eps));
}

// (x - mean) * rstd * w (+ b), in one pass.
template <class T, class S, class W, class B>
constexpr void normalise_row(const T* x, std::int64_t n, S s, T mean, T rstd, const T* w, W sw, const T* b, B sb, T* o) {
  if (b == nullptr) {
    SHARDWISE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i * s] - mean) * rstd * w[i * sw];
  } else {
    SHARDWISE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i * s] - mean) * rstd * w[i * sw] + b[i * sb];
  }
}

template <class T>
struct gradient_means {
  T plain, along;
};
// Of g = dy w: mean(g), 0 for rms norms, and mean(g h), h = (x - mean) rstd.
template <class T, class G, class X, class W>
constexpr gradient_means<T> row_means(const T* dy, G sg, const T* x, X sx, const T* w, W sw, T mean, T rstd, std::int64_t n,
                                      bool rms) {
  using acc = typename math<T>::accumulator;
  const acc count = math<acc>::from_count(n);
  const auto plain = [=](std::int64_t i) { return static_cast<acc>(dy[i * sg] * w[i * sw]); };
  const auto along = [=](std::int64_t i) { return static_cast<acc>(dy[i * sg] * w[i * sw] * ((x[i * sx] - mean) * rstd)); };
  return {rms ? T(0) : static_cast<T>(sum_terms<T>(n, plain) / count), static_cast<T>(sum_terms<T>(n, along) / count)};
}

// Sums over rows of what stands in their columns, for a tile of columns at a time, in two stages.
template <class T>
struct column_sums {
  static constexpr int tile = std::is_floating_point_v<T> ? 1024 : 8;
  using acc = typename math<T>::accumulator;
  acc stage[2][tile];
  std::int64_t columns = 0, rows = 0;

  constexpr void begin(std::int64_t m) {
    columns = m;
    rows = 0;
    for (auto& row : stage)
      for (std::int64_t j = 0; j < m; ++j) row[j] = acc(0);
  }
  template <class F>
  constexpr void add(const F& term) {
    SHARDWISE_IVDEP
    for (std::int64_t j = 0; j < columns; ++j) stage[0][j] = stage[0][j] + static_cast<acc>(term(j));
    if (++rows % 64 != 0) return;
    for (std::int64_t j = 0; j < columns; ++j) {
      stage[1][j] = stage[1][j] + stage[0][j];
      stage[0][j] = acc(0);
    }
  }
  constexpr void finish(T* o) const {
    for (std::int64_t j = 0; j < columns; ++j) o[j] = static_cast<T>(stage[1][j] + stage[0][j]);
  }
};

// f(first column, columns) for tiles that are n columns together.
template <class T, class F>
constexpr void each_tile(std::int64_t n, F&& f) {
  constexpr std::int64_t tile = column_sums<T>::tile;
  for (std::int64_t first = 0; first < n; first += tile) f(first, n - first < tile ? n - first : tile);
}

}  // namespace detail

template <>
struct kernel<op_code::norm_stats> {
  static constexpr cut_kind cut = cut_kind::normed;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const bool rms = attributes_of<norm_attributes>(c.a).rms == 1;
    const auto rows = [&](auto s) {
      each_row<2>(both, last, [&](const std::int64_t* at) {
        detail::row_stats<T>(q.p[0] + at[0], n, s, c.f, rms, q.p[result] + at[1]);
      });
    };
    by_strides<T>(rows, c.l[0].str[last]);
  }
};

template <>
struct kernel<op_code::norm_apply> {
  static constexpr cut_kind cut = cut_kind::normed;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const T* const bias = c.inputs > 3 ? q.p[3] : nullptr;
    const auto rows = [&](auto s, auto sw, auto sb) {
      each_row<3>(all, last, [&](const std::int64_t* at) {
        detail::normalise_row<T>(q.p[0] + at[0], n, s, q.p[1][at[1]], q.p[1][at[1] + c.l[1].str[last]], q.p[2], sw, bias, sb,
                                 q.p[result] + at[2]);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[2].str[0], bias == nullptr ? std::int64_t{1} : c.l[3].str[0]);
  }
};

// norm_stats and norm_apply, the row still in the nearest cache; the statistics go to the last operand if they are kept.
template <>
struct kernel<op_code::norm> {
  static constexpr cut_kind cut = cut_kind::normed;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const auto of = attributes_of<norm_attributes>(c.a);
    const int pairs = of.keeps_statistics != 0 ? c.inputs - 1 : -1;
    const T* const bias = c.inputs - (pairs < 0 ? 0 : 1) > 2 ? q.p[2] : nullptr;
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    layout none = c.l[0];  // where nobody asks for the statistics they are overwritten row by row
    for (int d = 0; d < last; ++d) none.str[d] = 0;
    T unasked[2] = {T(0), T(0)};
    T* const stats = pairs < 0 ? unasked : q.p[pairs];
    const layout* const all[3] = {&c.l[0], pairs < 0 ? &none : &c.l[pairs], &c.l[result]};
    const auto rows = [&](auto s, auto sw, auto sb) {
      each_row<3>(all, last, [&](const std::int64_t* at) {
        const T* const x = q.p[0] + at[0];
        T* const pair = stats + at[1];
        detail::row_stats<T>(x, n, s, c.f, of.rms == 1, pair);
        detail::normalise_row<T>(x, n, s, pair[0], pair[1], q.p[1], sw, bias, sb, q.p[result] + at[2]);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[1].str[0], bias == nullptr ? std::int64_t{1} : c.l[2].str[0]);
  }
};

// With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)); rms norm has no mean(g).
template <>
struct kernel<op_code::norm_dx> {
  static constexpr cut_kind cut = cut_kind::normed;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const bool rms = attributes_of<norm_attributes>(c.a).rms == 1;
    const auto rows = [&](auto sg, auto sx, auto sw) {
      each_row<4>(all, last, [&](const std::int64_t* at) {
        const T* const dy = q.p[0] + at[0];
        const T* const x = q.p[1] + at[1];
        const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
        const T* const w = q.p[3];
        T* const o = q.p[result] + at[3];
        const auto [g1, gh] = detail::row_means(dy, sg, x, sx, w, sw, mean, rstd, n, rms);
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = rstd * (dy[i * sg] * w[i * sw] - g1 - (x[i * sx] - mean) * rstd * gh);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[1].str[last], c.l[3].str[0]);
  }
};

template <>
struct kernel<op_code::norm_dw> {
  static constexpr cut_kind cut = cut_kind::columns;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    sums<T>(c, q, q.p[result], nullptr);
  }

  // Sums over rows of dy (x - mean) rstd, and, unless b is null, of dy.
  template <class T>
  static constexpr void sums(const call& c, const operands<T>& q, T* w, T* b) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[2]};
    const int last = c.l[0].rank - 1;
    const auto tiles = [&](auto sg, auto sx) {
      detail::each_tile<T>(c.l[0].ext[last], [&](std::int64_t first, std::int64_t m) {
        detail::column_sums<T> of_w, of_b;
        of_w.begin(m);
        if (b) of_b.begin(m);
        each_row<3>(all, last, [&](const std::int64_t* at) {
          const T* const dy = q.p[0] + at[0] + first * sg;
          const T* const x = q.p[1] + at[1] + first * sx;
          const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
          of_w.add([=](std::int64_t i) { return dy[i * sg] * ((x[i * sx] - mean) * rstd); });
          if (b) of_b.add([=](std::int64_t i) { return dy[i * sg]; });
        });
        of_w.finish(w + first);
        if (b) of_b.finish(b + first);
      });
    };
    by_strides<T>(tiles, c.l[0].str[last], c.l[1].str[last]);
  }
};

// norm_dw into the last operand and the sum of dy over the same rows.
template <>
struct kernel<op_code::norm_dw_db> {
  static constexpr cut_kind cut = cut_kind::columns;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    kernel<op_code::norm_dw>::sums<T>(c, q, q.p[3], q.p[result]);
  }
};

// norm_dx, norm_dw and the sum of dy in one pass over the rows, whose statistics are those of norm_stats; wide rows are read
// once more for every further tile of columns.
template <>
struct kernel<op_code::norm_dx_dw> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto of = attributes_of<norm_attributes>(c.a);
    const bool rms = of.rms == 1, biased = of.biased != 0;
    T* const dw = q.p[3];
    T* const db = q.p[3] + (biased ? c.l[3].str[0] : 0);
    const auto tiles = [&](auto sg, auto sx, auto sw) {
      detail::each_tile<T>(n, [&](std::int64_t first, std::int64_t m) {
        detail::column_sums<T> of_w, of_b;
        of_w.begin(m);
        if (biased) of_b.begin(m);
        each_row<3>(all, last, [&](const std::int64_t* at) {
          const T* const dy = q.p[0] + at[0];
          const T* const x = q.p[1] + at[1];
          const T* const w = q.p[2];
          T* const o = q.p[result] + at[2];
          T pair[2] = {T(0), T(0)};
          detail::row_stats<T>(x, n, sx, c.f, rms, pair);
          const T mean = pair[0], rstd = pair[1];
          of_w.add([=](std::int64_t i) { return dy[(first + i) * sg] * ((x[(first + i) * sx] - mean) * rstd); });
          if (biased) of_b.add([=](std::int64_t i) { return dy[(first + i) * sg]; });
          if (first != 0) return;
          const auto [g1, gh] = detail::row_means(dy, sg, x, sx, w, sw, mean, rstd, n, rms);
          SHARDWISE_IVDEP
          for (std::int64_t i = 0; i < n; ++i) o[i] = rstd * (dy[i * sg] * w[i * sw] - g1 - (x[i * sx] - mean) * rstd * gh);
        });
        of_w.finish(dw + first);
        if (biased) of_b.finish(db + first);
      });
    };
    by_strides<T>(tiles, c.l[0].str[last], c.l[1].str[last], c.l[2].str[0]);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END

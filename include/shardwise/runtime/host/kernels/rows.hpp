// SPDX-License-Identifier: Apache-2.0
// Kernels along the last dim: softmax, norms, log-sum-exp, cross entropy, and their adjoints.
#pragma once

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>
#include <shardwise/runtime/host/summation.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// What a row's elements are measured from before they are exponentiated: the largest, so that nothing overflows, but not an
// infinity, whose differences are no numbers.
template <class T>
constexpr T finite_or_zero(T top) {
  return top - top == T(0) ? top : T(0);
}

// o = exp(x - top): what lies apart is brought together first, for only then are exponentials fast.
template <class T, class S>
constexpr void exp_row(const T* x, std::int64_t n, S s, T top, T* o) {
  if constexpr (std::is_same_v<S, unit_stride>) {
    SHARDWISE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) o[i] = math<T>::exp(x[i] - top);
  } else {
    for (std::int64_t i = 0; i < n; ++i) o[i] = x[i * s] - top;
    independent_loop<T>(n, [=](std::int64_t i) { o[i] = math<T>::exp(o[i]); });
  }
}

// Sum of exp(x - top) over a row.
template <class T, class S>
constexpr T exp_total(const T* x, std::int64_t n, S s, T top) {
  using acc = typename math<T>::accumulator;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr std::int64_t piece = 256;
    T part[piece];
    staged_sum<acc> all;
    for (std::int64_t first = 0; first < n; first += piece) {
      const std::int64_t m = n - first < piece ? n - first : piece;
      exp_row(x + first * s, m, s, top, static_cast<T*>(part));
      const acc sum = sum_of(static_cast<const T*>(part), m, unit_stride{});
      if (n <= piece) return static_cast<T>(sum);
      all.add(sum);
    }
    return static_cast<T>(all.total());
  } else {
    acc total = acc(0);
    for (std::int64_t i = 0; i < n; ++i) total = total + math<T>::exp(x[i * s] - top);
    return static_cast<T>(total);
  }
}

template <class T, class S>
constexpr T top_of(const T* x, std::int64_t n, S s) {
  if constexpr (math<T>::ordered) return n > 0 ? largest_of(x, n, s) : math<T>::lowest();
  else return T(0);
}

}  // namespace detail

// Of a row with a NaN or +infinity, or of -infinity alone: NaN, as in PyTorch.
template <>
struct kernel<op_code::softmax> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const int last = x.rank - 1;
    const std::int64_t keys = x.ext[last];
    const bool causal = c.a.v[0] != 0;
    const std::int64_t queries = causal ? x.ext[last - 1] : 1, first = causal ? x.origin[last - 1] : 0;
    const layout* const both[2] = {&x, &o};
    const auto rows = [&](auto s) {
      std::int64_t row = 0;
      each_row<2>(both, last, [&](const std::int64_t* at) {
        const T* const in = q.p[0] + at[0];
        T* const out = q.p[result] + at[1];
        const std::int64_t visible = causal ? first + row % queries + 1 : keys;
        ++row;
        const std::int64_t n = visible < keys ? visible : keys;
        const T top = detail::top_of(in, n, s);
        detail::exp_row(in, n, s, top, out);
        const T inverse = T(1) / static_cast<T>(sum_of(static_cast<const T*>(out), n, unit_stride{}));
        for (std::int64_t i = 0; i < n; ++i) out[i] = out[i] * inverse;
        for (std::int64_t i = n; i < keys; ++i) out[i] = T(0);
      });
    };
    by_strides<T>(rows, x.str[last]);
  }
};

// dx = y (dy - sum(dy y)); masked elements have y = 0.
template <>
struct kernel<op_code::softmax_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using acc = typename math<T>::accumulator;
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto rows = [&](auto s0, auto s1) {
      each_row<3>(all, last, [&](const std::int64_t* at) {
        const T* const g = q.p[0] + at[0];
        const T* const y = q.p[1] + at[1];
        T* const o = q.p[result] + at[2];
        const T dot = static_cast<T>(sum_terms<T>(n, [=](std::int64_t i) { return static_cast<acc>(g[i * s0]) * static_cast<acc>(y[i * s1]); }));
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = y[i * s1] * (g[i * s0] - dot);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[1].str[last]);
  }
};

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

// (x - mean) * rstd * w (+ b)
template <class T, class S, class W>
constexpr void normalise_row(const T* x, std::int64_t n, S s, T mean, T rstd, const T* w, W sw, const T* b, std::int64_t sb, T* o) {
  SHARDWISE_IVDEP
  for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i * s] - mean) * rstd * w[i * sw];
  if (b == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] + b[i * sb];
}

template <class T>
struct gradient_means {
  T plain, along;
};
// Of g = dy w: mean(g), 0 for rms norms, and mean(g h), h = (x - mean) rstd.
template <class T, class G, class X, class W>
constexpr gradient_means<T> row_means(const T* dy, G sg, const T* x, X sx, const T* w, W sw, T mean, T rstd, std::int64_t n, bool rms) {
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
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto rows = [&](auto s) {
      each_row<2>(both, last, [&](const std::int64_t* at) {
        detail::row_stats<T>(q.p[0] + at[0], n, s, c.f, c.a.v[0] == 1, q.p[result] + at[1]);
      });
    };
    by_strides<T>(rows, c.l[0].str[last]);
  }
};

template <>
struct kernel<op_code::norm_apply> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const T* const bias = c.inputs > 3 ? q.p[3] : nullptr;
    const auto rows = [&](auto s, auto sw) {
      each_row<3>(all, last, [&](const std::int64_t* at) {
        detail::normalise_row<T>(q.p[0] + at[0], n, s, q.p[1][at[1]], q.p[1][at[1] + c.l[1].str[last]], q.p[2], sw, bias,
                                 c.l[3].str[0], q.p[result] + at[2]);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[2].str[0]);
  }
};

// norm_stats and norm_apply, the row still in the nearest cache; the statistics go to the last operand if v2 says so.
template <>
struct kernel<op_code::norm> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const int pairs = c.a.v[2] != 0 ? c.inputs - 1 : -1;
    const T* const bias = c.inputs - (pairs < 0 ? 0 : 1) > 2 ? q.p[2] : nullptr;
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    layout none = c.l[0];  // where nobody asks for the statistics they are overwritten row by row
    for (int d = 0; d < last; ++d) none.str[d] = 0;
    T unasked[2] = {T(0), T(0)};
    T* const stats = pairs < 0 ? unasked : q.p[pairs];
    const layout* const all[3] = {&c.l[0], pairs < 0 ? &none : &c.l[pairs], &c.l[result]};
    const auto rows = [&](auto s, auto sw) {
      each_row<3>(all, last, [&](const std::int64_t* at) {
        const T* const x = q.p[0] + at[0];
        T* const pair = stats + at[1];
        detail::row_stats<T>(x, n, s, c.f, c.a.v[0] == 1, pair);
        detail::normalise_row<T>(x, n, s, pair[0], pair[1], q.p[1], sw, bias, c.l[2].str[0], q.p[result] + at[2]);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[1].str[0]);
  }
};

// With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)); rms norm has no mean(g).
template <>
struct kernel<op_code::norm_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const bool rms = c.a.v[0] == 1;
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
struct kernel<op_code::norm_grads> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    kernel<op_code::norm_dw>::sums<T>(c, q, q.p[3], q.p[result]);
  }
};

// norm_dx, norm_dw and the sum of dy in one pass over the rows, whose statistics are those of norm_stats; wide rows are read
// once more for every further tile of columns.
template <>
struct kernel<op_code::norm_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const bool rms = c.a.v[0] == 1, biased = c.a.v[1] != 0;
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

// Of no elements, or of -infinity alone, -infinity; infinity beside an infinity, but a NaN beside a NaN.
template <>
struct kernel<op_code::lse> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto rows = [&](auto s) {
      each_row<2>(both, last, [&](const std::int64_t* at) {
        const T* const x = q.p[0] + at[0];
        const T from = detail::finite_or_zero(detail::top_of(x, n, s));
        q.p[result][at[1]] = from + m::log(detail::exp_total(x, n, s, from));
      });
    };
    by_strides<T>(rows, c.l[0].str[last]);
  }
};

// Where ranks share a row's classes, the one that holds the target has the row's loss and the others have zero.
template <>
struct kernel<op_code::nll> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    const std::int64_t first = c.l[0].origin[last], classes = c.l[0].global[last];
    each_row<4>(all, last, [&](const std::int64_t* at) {
      const std::int64_t id = q.index[at[2]];
      const bool ignored = c.a.v[0] != 0 && id == c.a.v[1];
      if (!ignored && (id < 0 || id >= classes)) detail::refuse_index("cross_entropy target", id, classes, op_code::nll);
      const bool own = !ignored && id >= first && id < first + n;
      q.p[result][at[3]] = own ? q.p[1][at[1]] - q.p[0][at[0] + (id - first) * s] : T(0);
    });
  }
};

// operands: cotangent, logits, log-sum-exp, target: dy (softmax - onehot)
template <>
struct kernel<op_code::nll_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const all[5] = {&c.l[1], &c.l[0], &c.l[2], &c.l[3], &c.l[result]};
    const int last = c.l[1].rank - 1;
    const std::int64_t n = c.l[1].ext[last], s = c.l[1].str[last], first = c.l[1].origin[last];
    each_row<5>(all, last, [&](const std::int64_t* at) {
      const T* const x = q.p[1] + at[0];
      const std::int64_t id = q.index[at[3]];
      const bool ignored = c.a.v[0] != 0 && id == c.a.v[1];
      const T g = q.p[0][at[1]], norm = q.p[2][at[2]];
      T* const o = q.p[result] + at[4];
      if (ignored) {
        for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
      } else if (s == 1) {
        independent_loop<T>(n, [=](std::int64_t i) { o[i] = g * m::exp(x[i] - norm); });
      } else {
        for (std::int64_t i = 0; i < n; ++i) o[i] = g * m::exp(x[i * s] - norm);
      }
      if (!ignored && id >= first && id < first + n) o[id - first] = o[id - first] - g;
    });
  }
};

// The part of the log-sum-exp that a rank with some of the classes has: sum of exp(x - top), `top` being the largest of
// all classes.
template <>
struct kernel<op_code::exp_sum> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto rows = [&](auto s) {
      each_row<3>(all, last, [&](const std::int64_t* at) {
        q.p[result][at[2]] = detail::exp_total(q.p[0] + at[0], n, s, detail::finite_or_zero(q.p[1][at[1]]));
      });
    };
    by_strides<T>(rows, c.l[0].str[last]);
  }
};

// (x - top) - log(sum of exp(x - top)): the logarithm is not lost beside large elements. Infinities as softmax.
template <>
struct kernel<op_code::log_softmax> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto rows = [&](auto s) {
      each_row<2>(both, last, [&](const std::int64_t* at) {
        const T* const x = q.p[0] + at[0];
        T* const o = q.p[result] + at[1];
        const T top = detail::top_of(x, n, s), rest = m::log(detail::exp_total(x, n, s, top));
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i * s] - top) - rest;
      });
    };
    by_strides<T>(rows, c.l[0].str[last]);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::host

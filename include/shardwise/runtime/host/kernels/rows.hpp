// SPDX-License-Identifier: Apache-2.0
// Kernels along the last dim: softmax, norms, log-sum-exp, cross entropy, and their adjoints.
#pragma once

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {

template <>
struct kernel<op_code::softmax> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const int last = x.rank - 1;
    const std::int64_t keys = x.ext[last], sx = x.str[last];
    const bool causal = c.a.v[0] != 0;
    const std::int64_t queries = causal ? x.ext[last - 1] : 1, first = causal ? x.origin[last - 1] : 0;
    const layout* const both[2] = {&x, &o};
    std::int64_t row = 0;
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const in = q.p[0] + at[0];
      T* const out = q.p[result] + at[1];
      const std::int64_t visible = causal ? first + row % queries + 1 : keys;
      ++row;
      const std::int64_t n = visible < keys ? visible : keys;
      T top = T(0);
      if constexpr (m::ordered)
        if (n > 0) {
          top = in[0];
          for (std::int64_t i = 1; i < n; ++i) top = m::max(top, in[i * sx]);
        }
      if (sx == 1) {
        independent_loop<T>(n, [=](std::int64_t i) { out[i] = m::exp(in[i] - top); });
      } else {
        for (std::int64_t i = 0; i < n; ++i) out[i] = m::exp(in[i * sx] - top);
      }
      T total = T(0);
      for (std::int64_t i = 0; i < n; ++i) total = total + out[i];
      const T inverse = T(1) / total;
      for (std::int64_t i = 0; i < n; ++i) out[i] = out[i] * inverse;
      for (std::int64_t i = n; i < keys; ++i) out[i] = T(0);
    });
  }
};

// dx = y (dy - sum(dy y)); masked elements have y = 0.
template <>
struct kernel<op_code::softmax_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s0 = c.l[0].str[last], s1 = c.l[1].str[last];
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const g = q.p[0] + at[0];
      const T* const y = q.p[1] + at[1];
      T* const o = q.p[result] + at[2];
      T dot = T(0);
      for (std::int64_t i = 0; i < n; ++i) dot = dot + g[i * s0] * y[i * s1];
      if (s0 == 1 && s1 == 1) {
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = y[i] * (g[i] - dot);
      } else {
        for (std::int64_t i = 0; i < n; ++i) o[i] = y[i * s1] * (g[i * s0] - dot);
      }
    });
  }
};

namespace detail {

// One row of n elements, s apart. Layer norm: (mean, 1 / sqrt(variance + eps)); rms norm: (0, 1 / sqrt(mean square +
// eps)).
template <class T>
constexpr void row_stats(const T* x, std::int64_t n, std::int64_t s, double epsilon, bool rms, T* o) {
  using acc = typename math<T>::accumulator;
  const acc count = math<acc>::from_count(n), eps = math<acc>::from(epsilon);
  acc mean = acc(0);
  if (!rms) {
    for (std::int64_t i = 0; i < n; ++i) mean = mean + static_cast<acc>(x[i * s]);
    mean = mean / count;
  }
  acc square = acc(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const acc d = static_cast<acc>(x[i * s]) - mean;
    square = square + d * d;
  }
  o[0] = static_cast<T>(mean);
  o[1] = static_cast<T>(acc(1) / math<acc>::sqrt(square / count + eps));
}

// (x - mean) * rstd * w (+ b)
template <class T>
constexpr void normalise_row(const T* x, std::int64_t n, std::int64_t s, T mean, T rstd, const T* w, std::int64_t sw,
                             const T* b, std::int64_t sb, T* o) {
  if (s == 1 && sw == 1) {
    SHARDWISE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * rstd * w[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i * s] - mean) * rstd * w[i * sw];
  }
  if (b == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] + b[i * sb];
}

}  // namespace detail

template <>
struct kernel<op_code::norm_stats> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row<2>(both, last, [&](const std::int64_t* at) {
      detail::row_stats<T>(q.p[0] + at[0], n, s, c.f, c.a.v[0] == 1, q.p[result] + at[1]);
    });
  }
};

template <>
struct kernel<op_code::norm_apply> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    const T* const bias = c.inputs > 3 ? q.p[3] : nullptr;
    each_row<3>(all, last, [&](const std::int64_t* at) {
      detail::normalise_row<T>(q.p[0] + at[0], n, s, q.p[1][at[1]], q.p[1][at[1] + c.l[1].str[last]], q.p[2], c.l[2].str[0],
                               bias, c.l[3].str[0], q.p[result] + at[2]);
    });
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
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    const auto row = [&](const T* x, T* pair, T* o) {
      detail::row_stats<T>(x, n, s, c.f, c.a.v[0] == 1, pair);
      detail::normalise_row<T>(x, n, s, pair[0], pair[1], q.p[1], c.l[1].str[0], bias, c.l[2].str[0], o);
    };
    if (pairs >= 0) {
      const layout* const all[3] = {&c.l[0], &c.l[pairs], &c.l[result]};
      each_row<3>(all, last, [&](const std::int64_t* at) { row(q.p[0] + at[0], q.p[pairs] + at[1], q.p[result] + at[2]); });
    } else {
      const layout* const both[2] = {&c.l[0], &c.l[result]};
      T pair[2] = {T(0), T(0)};
      each_row<2>(both, last, [&](const std::int64_t* at) { row(q.p[0] + at[0], pair, q.p[result] + at[1]); });
    }
  }
};

// With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)); rms norm has no mean(g).
template <>
struct kernel<op_code::norm_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], sg = c.l[0].str[last], sx = c.l[1].str[last], sw = c.l[3].str[0];
    const bool rms = c.a.v[0] == 1;
    const T count = math<T>::from_count(n);
    each_row<4>(all, last, [&](const std::int64_t* at) {
      const T* const dy = q.p[0] + at[0];
      const T* const x = q.p[1] + at[1];
      const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
      const T* const w = q.p[3];
      T* const o = q.p[result] + at[3];
      T g1 = T(0), gh = T(0);
      for (std::int64_t i = 0; i < n; ++i) {
        const T g = dy[i * sg] * w[i * sw];
        g1 = g1 + g;
        gh = gh + g * ((x[i * sx] - mean) * rstd);
      }
      g1 = rms ? T(0) : g1 / count;
      gh = gh / count;
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[i] = rstd * (dy[i * sg] * w[i * sw] - g1 - (x[i * sx] - mean) * rstd * gh);
    });
  }
};

template <>
struct kernel<op_code::norm_dw> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[2]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], sg = c.l[0].str[last], sx = c.l[1].str[last];
    T* const o = q.p[result];
    for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const dy = q.p[0] + at[0];
      const T* const x = q.p[1] + at[1];
      const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] + dy[i * sg] * ((x[i * sx] - mean) * rstd);
    });
  }
};

// norm_dw into the last operand and the sum of dy over the same rows.
template <>
struct kernel<op_code::norm_grads> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[2]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], sg = c.l[0].str[last], sx = c.l[1].str[last];
    T* const w = q.p[3];
    T* const b = q.p[result];
    for (std::int64_t i = 0; i < n; ++i) w[i] = b[i] = T(0);
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const dy = q.p[0] + at[0];
      const T* const x = q.p[1] + at[1];
      const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) {
        w[i] = w[i] + dy[i * sg] * ((x[i * sx] - mean) * rstd);
        b[i] = b[i] + dy[i * sg];
      }
    });
  }
};

// norm_dx, norm_dw and the sum of dy in one pass over the rows, whose statistics are those of norm_stats.
template <>
struct kernel<op_code::norm_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], sg = c.l[0].str[last], sx = c.l[1].str[last], sw = c.l[2].str[0];
    const bool rms = c.a.v[0] == 1, biased = c.a.v[1] != 0;
    const T count = math<T>::from_count(n);
    T* const dw = q.p[3];
    T* const db = q.p[3] + (biased ? c.l[3].str[0] : 0);
    for (std::int64_t i = 0; i < n; ++i) dw[i] = db[i] = T(0);
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const dy = q.p[0] + at[0];
      const T* const x = q.p[1] + at[1];
      const T* const w = q.p[2];
      T* const o = q.p[result] + at[2];
      T pair[2] = {T(0), T(0)};
      detail::row_stats<T>(x, n, sx, c.f, rms, pair);
      const T mean = pair[0], rstd = pair[1];
      T g1 = T(0), gh = T(0);
      for (std::int64_t i = 0; i < n; ++i) {
        const T g = dy[i * sg] * w[i * sw];
        g1 = g1 + g;
        gh = gh + g * ((x[i * sx] - mean) * rstd);
      }
      g1 = rms ? T(0) : g1 / count;
      gh = gh / count;
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) dw[i] = dw[i] + dy[i * sg] * ((x[i * sx] - mean) * rstd);
      if (biased) {
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) db[i] = db[i] + dy[i * sg];
      }
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[i] = rstd * (dy[i * sg] * w[i * sw] - g1 - (x[i * sx] - mean) * rstd * gh);
    });
  }
};

template <>
struct kernel<op_code::lse> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      T top = T(0);
      if constexpr (m::ordered) {
        top = x[0];
        for (std::int64_t i = 1; i < n; ++i) top = m::max(top, x[i * s]);
      }
      T total = T(0);
      for (std::int64_t i = 0; i < n; ++i) total = total + m::exp(x[i * s] - top);
      q.p[result][at[1]] = top + m::log(total);
    });
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
      if (!ignored && (id < 0 || id >= classes)) detail::refuse_index("cross_entropy target", id, classes);
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
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      const T top = q.p[1][at[1]];
      T total = T(0);
      for (std::int64_t i = 0; i < n; ++i) total = total + math<T>::exp(x[i * s] - top);
      q.p[result][at[2]] = total;
    });
  }
};

// x - log(sum of exp(x))
template <>
struct kernel<op_code::log_softmax> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      T* const o = q.p[result] + at[1];
      T top = T(0);
      if constexpr (m::ordered)
        if (n > 0) {
          top = x[0];
          for (std::int64_t i = 1; i < n; ++i) top = m::max(top, x[i * s]);
        }
      T total = T(0);
      for (std::int64_t i = 0; i < n; ++i) total = total + m::exp(x[i * s] - top);
      const T norm = top + m::log(total);
      for (std::int64_t i = 0; i < n; ++i) o[i] = x[i * s] - norm;
    });
  }
};

}  // namespace shardwise::host

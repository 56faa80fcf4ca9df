// SPDX-License-Identifier: Apache-2.0
// Cross entropy on the host: log-sum-exp and likelihoods, classes whole or sharded.
#pragma once

#include <shardwise/runtime/host/row_exponentials.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// Of a row of n elements, `step` apart. Of no elements, or of -infinity alone, -infinity; infinity beside an infinity, but a NaN beside a
// NaN.
template <class T, class Step>
constexpr T log_sum_exp(const T* x, std::int64_t n, Step step) {
  const T from = finite_or_zero(top_of(x, n, step));
  return from + math<T>::log(exp_total(x, n, step, from));
}
// g softmax(x) by the row's log-sum-exp, to o, which may lie where x does if the elements of both lie side by side.
template <class T, class Step>
constexpr void scaled_softmax(const T* x, std::int64_t n, Step step, T norm, T g, T* o) {
  SHARDWISE_IVDEP
  for (std::int64_t i = 0; i < n; ++i) o[i] = g * math<T>::exp(x[i * step] - norm);
}

}  // namespace detail

template <>
struct kernel<op_code::lse> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last];
    const auto rows = [&](auto s) {
      each_row<2>(both, last,
                  [&](const std::int64_t* at) { q.p[result][at[1]] = detail::log_sum_exp(q.p[0] + at[0], n, s); });
    };
    by_strides<T>(rows, c.l[0].str[last]);
  }
};

// Where ranks share a row's classes, the one that holds the target has the row's loss and the others have zero.
template <>
struct kernel<op_code::nll> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const auto of = attributes_of<nll_attributes>(c.a);
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    const std::int64_t first = c.l[0].origin[last], classes = c.l[0].global[last];
    each_row<4>(all, last, [&](const std::int64_t* at) {
      const std::int64_t id = q.index[at[2]];
      const bool ignored = of.ignores != 0 && id == of.ignored;
      if (!ignored && (id < 0 || id >= classes)) detail::refuse_index("cross_entropy target", id, classes, op_code::nll);
      const bool own = !ignored && id >= first && id < first + n;
      q.p[result][at[3]] = own ? q.p[1][at[1]] - q.p[0][at[0] + (id - first) * s] : T(0);
    });
  }
};

// operands: cotangent, logits, log-sum-exp, target: dy (softmax - onehot)
template <>
struct kernel<op_code::nll_dx> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const auto of = attributes_of<nll_attributes>(c.a);
    const layout* const all[5] = {&c.l[1], &c.l[0], &c.l[2], &c.l[3], &c.l[result]};
    const int last = c.l[1].rank - 1;
    const std::int64_t n = c.l[1].ext[last], s = c.l[1].str[last], first = c.l[1].origin[last];
    const auto rows = [&](auto by) {
      each_row<5>(all, last, [&](const std::int64_t* at) {
        const T* const x = q.p[1] + at[0];
        const std::int64_t id = q.index[at[3]];
        const bool ignored = of.ignores != 0 && id == of.ignored;
        const T g = q.p[0][at[1]], norm = q.p[2][at[2]];
        T* const o = q.p[result] + at[4];
        if (ignored) {
          for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
          return;
        }
        detail::scaled_softmax(x, n, by, norm, g, o);
        if (id >= first && id < first + n) o[id - first] = o[id - first] - g;
      });
    };
    by_strides<T>(rows, s);
  }
};

// Row by row what lse, nll and nll_dx compute, in the same bits. dx may lie where the logits do: a row is written when all of it is read.
template <>
struct kernel<op_code::nll_dx_loss> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const auto of = attributes_of<nll_attributes>(c.a);
    const layout* const all[5] = {&c.l[1], &c.l[0], &c.l[2], &c.l[3], &c.l[result]};
    const int last = c.l[1].rank - 1;
    const std::int64_t n = c.l[1].ext[last], s = c.l[1].str[last];
    const auto rows = [&](auto by) {
      each_row<5>(all, last, [&](const std::int64_t* at) {
        const T* const x = q.p[1] + at[0];
        const T norm = detail::log_sum_exp(x, n, by), g = q.p[0][at[1]];
        const std::int64_t id = q.index[at[2]];
        const bool ignored = of.ignores != 0 && id == of.ignored;
        if (!ignored && (id < 0 || id >= n)) detail::refuse_index("cross_entropy target", id, n, op_code::nll);
        q.p[3][at[3]] = ignored ? T(0) : norm - x[id * by];
        T* const o = q.p[result] + at[4];
        if (ignored) {
          for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
          return;
        }
        detail::scaled_softmax(x, n, by, norm, g, o);
        o[id] = o[id] - g;
      });
    };
    by_strides<T>(rows, s);
  }
};

// The part of the log-sum-exp that a rank with some of the classes has: sum of exp(x - top), `top` being the largest of
// all classes.
template <>
struct kernel<op_code::exp_sum> {
  static constexpr cut_kind cut = cut_kind::rows;
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

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END

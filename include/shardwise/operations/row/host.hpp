// SPDX-License-Identifier: Apache-2.0
// Along the last dim on the host: softmax, its logarithm, the largest elements and what stands where they do.
#pragma once

#include <shardwise/runtime/host/row_exponentials.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Of a row with a NaN or +infinity, or of -infinity alone: NaN, as in PyTorch.
template <>
struct kernel<op_code::softmax> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const int last = x.rank - 1;
    const std::int64_t keys = x.ext[last];
    const bool causal = attributes_of<softmax_attributes>(c.a).causal != 0;
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
struct kernel<op_code::softmax_dx> {
  static constexpr cut_kind cut = cut_kind::rows;
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
        const T dot = static_cast<T>(
            sum_terms<T>(n, [=](std::int64_t i) { return static_cast<acc>(g[i * s0]) * static_cast<acc>(y[i * s1]); }));
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = y[i * s1] * (g[i * s0] - dot);
      });
    };
    by_strides<T>(rows, c.l[0].str[last], c.l[1].str[last]);
  }
};

// (x - top) - log(sum of exp(x - top)): the logarithm is not lost beside large elements. Infinities as softmax.
template <>
struct kernel<op_code::log_softmax> {
  static constexpr cut_kind cut = cut_kind::rows;
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

// Position k is that of the largest element after those found before: of equals the one that stands first. A NaN is larger
// than any number, as in PyTorch; argmin (topk_attributes::smallest 2) finds one first. K passes over a row.
template <>
struct kernel<op_code::topk> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last], found = c.l[result].ext[last];
    const std::int64_t order = attributes_of<topk_attributes>(c.a).smallest;
    const bool smallest = order != 0, nan_first = order != 1;
    const auto before = [smallest, nan_first](T x, T y) {
      if (!(x == x)) return nan_first && y == y;
      if (!(y == y)) return !nan_first;
      return smallest ? m::less(x, y) : m::less(y, x);
    };
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      std::int32_t* const o = q.index_out + at[1];
      for (std::int64_t k = 0; k < found; ++k) {
        std::int64_t best = -1;
        for (std::int64_t i = 0; i < n; ++i) {
          // after the one found last: not before it, and if equal behind it
          if (k > 0) {
            const std::int64_t p = o[k - 1];
            if (before(x[i * s], x[p * s]) || (!before(x[p * s], x[i * s]) && i <= p)) continue;
          }
          if (best < 0 || before(x[i * s], x[best * s])) best = i;
        }
        o[k] = static_cast<std::int32_t>(best);
      }
    });
  }
};

template <>
struct kernel<op_code::take> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last], count = c.l[1].ext[last], si = c.l[1].str[last];
    each_row<3>(all, last, [&](const std::int64_t* at) {
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t id = q.index[at[1] + k * si];
        if (id < 0 || id >= n) detail::refuse_index("take", id, n);
        q.p[result][at[2] + k] = q.p[0][at[0] + id * s];
      }
    });
  }
};

// Adds each cotangent where its element was taken from.
template <>
struct kernel<op_code::take_dx> {
  static constexpr cut_kind cut = cut_kind::rows;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t count = c.l[1].ext[last], sg = c.l[0].str[last], si = c.l[1].str[last], n = c.l[result].ext[last];
    each_row<3>(all, last, [&](const std::int64_t* at) {
      T* const o = q.p[result] + at[2];
      for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t id = q.index[at[1] + k * si];
        o[id] = o[id] + q.p[0][at[0] + k * sg];
      }
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END

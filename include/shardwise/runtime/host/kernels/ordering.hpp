// SPDX-License-Identifier: Apache-2.0
// Largest, smallest and product over dims; searches along the last dim, and what stands at the positions found.
#pragma once

#include <shardwise/runtime/host/kernels/sum.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// f(first, next) over all elements that one result stands for, from `start`. Reduced dims stay with extent 1.
template <class T, class F>
constexpr void reduce_into(const call& c, const operands<T>& q, T start, F f) {
  const layout& x = c.l[0];
  const layout& out = c.l[result];
  T* const o = q.p[result];
  const std::int64_t n = out.numel();
  for (std::int64_t i = 0; i < n; ++i) o[i] = start;
  walk<2> w;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t s[2] = {(c.a.v[0] >> d) & 1 ? 0 : out.str[d], x.str[d]};
    w.push(x.ext[d], s);
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t count, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = q.p[0] + off[1];
    if (s[0] == 0) {
      T best = *oo;
      for (std::int64_t i = 0; i < count; ++i) best = f(best, xx[i * s[1]]);
      *oo = best;
    } else {
      for (std::int64_t i = 0; i < count; ++i) oo[i * s[0]] = f(oo[i * s[0]], xx[i * s[1]]);
    }
  });
}

// A NaN stays.
template <class T>
constexpr T larger(T x, T y) {
  return math<T>::less(x, y) || !(y == y) ? y : x;
}
template <class T>
constexpr T smaller(T x, T y) {
  return math<T>::less(y, x) || !(y == y) ? y : x;
}

}  // namespace detail

template <>
struct kernel<op_code::amax> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::reduce_into<T>(c, q, math<T>::lowest(), [](T x, T y) { return detail::larger<T>(x, y); });
  }
};

template <>
struct kernel<op_code::amin> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::reduce_into<T>(c, q, math<T>::highest(), [](T x, T y) { return detail::smaller<T>(x, y); });
  }
};

template <>
struct kernel<op_code::prod> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::reduce_into<T>(c, q, T(1), [](T x, T y) { return x * y; });
  }
};

// dy times the product of the other elements, from the products before and after each: exact with any number of zeros.
template <>
struct kernel<op_code::prod_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout &dy = c.l[0], &x = c.l[1], &out = c.l[result];
    walk<3> kept;
    walk<2> reduced;  // x, out
    for (int d = 0; d < x.rank; ++d) {
      const std::int64_t s[3] = {dy.str[d], x.str[d], out.str[d]};
      if ((c.a.v[0] >> d) & 1)
        reduced.push(x.ext[d], s + 1);
      else
        kept.push(x.ext[d], s);
    }
    kept.merge();
    reduced.merge();
    std::int64_t count = 1;
    for (int d = 0; d < reduced.rank; ++d) count *= reduced.ext[d];
    const auto offset = [&reduced](int k, std::int64_t i) {
      std::int64_t o = 0;
      for (int d = reduced.rank - 1; d >= 0; --d) {
        o += i % reduced.ext[d] * reduced.str[k][d];
        i /= reduced.ext[d];
      }
      return o;
    };
    if (count == 0) return;
    kept.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
      for (std::int64_t r = 0; r < n; ++r) {
        const T* const in = q.p[1] + off[1] + r * s[1];
        T* const o = q.p[result] + off[2] + r * s[2];
        T before = q.p[0][off[0] + r * s[0]], after = T(1);
        for (std::int64_t i = 0; i < count; ++i) {
          o[offset(1, i)] = before;
          before = before * in[offset(0, i)];
        }
        for (std::int64_t i = count - 1; i >= 0; --i) {
          o[offset(1, i)] = o[offset(1, i)] * after;
          after = after * in[offset(0, i)];
        }
      }
    });
  }
};

// Position k is that of the largest element after those found before: of equals the one that stands first. A NaN is larger
// than any number, as in PyTorch; argmin (v1 2) finds one first. K passes over a row.
template <>
struct kernel<op_code::topk> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last], found = c.l[result].ext[last];
    const bool smallest = c.a.v[1] != 0, nan_first = c.a.v[1] != 1;
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
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t count = c.l[1].ext[last], sg = c.l[0].str[last], si = c.l[1].str[last],
                       n = c.l[result].ext[last];
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
}  // namespace shardwise::host

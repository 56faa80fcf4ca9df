// SPDX-License-Identifier: Apache-2.0
// Sums, means, sums of squares, extremes, products and norms of vectors over dims on the host, with their adjoints.
#pragma once

#include <shardwise/runtime/host/norm_math.hpp>
#include <shardwise/runtime/host/sums.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

template <>
struct kernel<op_code::sum> {
  static constexpr cut_kind cut = cut_kind::sums;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using acc = typename math<T>::accumulator;
    if (attributes_of<sum_attributes>(c.a).mean == 0) return detail::sum_into<T, false>(c, q);
    const acc count = math<acc>::from_count(detail::summed_count(c.a, c.l[0]));
    detail::sum_values(c, q, as_it_is{}, [count](acc total) { return static_cast<T>(total / count); });
  }
};

template <>
struct kernel<op_code::sumsq> {
  static constexpr cut_kind cut = cut_kind::sums;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::sum_into<T, true>(c, q);
  }
};

// Adjoint of sum: operand 0 is the (smaller) cotangent, spread over the result's summed dims.
template <>
struct kernel<op_code::expand> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& out = c.l[result];
    std::int64_t si[max_rank]{};
    detail::sum_strides(c.a, out, c.l[0], si);
    walk<2> w;
    for (int i = 0; i < out.rank; ++i) {
      const int d = stored_dim(out, i);
      const std::int64_t s[2] = {out.str[d], si[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    const T count = math<T>::from_count(attributes_of<sum_attributes>(c.a).mean != 0 ? detail::summed_count(c.a, out) : 1);
    w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
      T* const to = q.p[result] + off[0];
      const T* const from = q.p[0] + off[1];
      if (s[1] == 0 && s[0] == 1) {  // one cotangent for a run of neighbours, which is then divided once: a fill
        const T value = *from / count;
        for (std::int64_t i = 0; i < n; ++i) to[i] = value;
      } else {
        for (std::int64_t i = 0; i < n; ++i) to[i * s[0]] = from[i * s[1]] / count;
      }
    });
  }
};

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
    const std::int64_t s[2] = {(attributes_of<extent_one_attributes>(c.a).dims >> d) & 1 ? 0 : out.str[d], x.str[d]};
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
      if ((attributes_of<extent_one_attributes>(c.a).dims >> d) & 1) reduced.push(x.ext[d], s + 1);
      else kept.push(x.ext[d], s);
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

namespace detail {
// P: an order known to the compiler; 0: the one that p says. Orders other than 2 are rare: compiled for one instruction set.
template <int P>
struct power {
  static constexpr bool narrow = true;
  int p;
  template <class V>
  constexpr V operator()(V v) const {
    return norm_math<V>::power(v, P > 0 ? P : p);
  }
};
}  // namespace detail

template <>
struct kernel<op_code::vector_norm> {
  static constexpr cut_kind cut = cut_kind::sums;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using acc = typename math<T>::accumulator;
    const int p = static_cast<int>(attributes_of<vector_norm_attributes>(c.a).order);
    const auto root = [p](acc total) { return static_cast<T>(norm_math<acc>::root(total, p)); };
    if (p == 1) detail::sum_values(c, q, detail::power<1>{p}, root);
    else if (p == 2) detail::sum_values(c, q, squared{}, root);
    else detail::sum_values(c, q, detail::power<0>{p}, root);
  }
};

// Operands: cotangent of the norms, the operand, the norms.
template <>
struct kernel<op_code::vector_norm_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& out = c.l[result];
    const int p = static_cast<int>(attributes_of<vector_norm_attributes>(c.a).order);
    std::int64_t sy[max_rank]{}, sn[max_rank]{};
    detail::sum_strides(c.a, out, c.l[0], sy);
    detail::sum_strides(c.a, out, c.l[2], sn);
    walk<4> w;
    for (int d = 0; d < out.rank; ++d) {
      const std::int64_t s[4] = {out.str[d], sy[d], c.l[1].str[d], sn[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
      for (std::int64_t i = 0; i < n; ++i)
        q.p[result][off[0] + i * s[0]] =
            q.p[0][off[1] + i * s[1]] * norm_math<T>::slope(q.p[1][off[2] + i * s[2]], q.p[2][off[3] + i * s[3]], p);
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

// SPDX-License-Identifier: Apache-2.0
// Sums, means, sums of squares, and the adjoint that spreads a cotangent back.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {

namespace detail {
// Strides with which the summed result follows the operand's dims (0 along summed dims).
constexpr void sum_strides(const op_attr& a, const layout& x, const layout& out, std::int64_t* s) {
  int k = 0;
  for (int d = 0; d < x.rank; ++d) {
    const bool summed = (a.v[0] >> d) & 1, kept = (a.v[1] >> d) & 1;
    s[d] = summed ? 0 : out.str[k];
    if (!summed || kept) ++k;
  }
}

constexpr std::int64_t summed_count(const op_attr& a, const layout& x) {
  std::int64_t n = 1;
  for (int d = 0; d < x.rank; ++d)
    if ((a.v[0] >> d) & 1) n *= x.global[d];
  return n;
}

struct as_it_is {
  template <class V>
  constexpr V operator()(V v) const {
    return v;
  }
};
struct squared {
  template <class V>
  constexpr V operator()(V v) const {
    return v * v;
  }
};

// Sums of `value` of every element, along runs in the accumulator's type.
template <class T, class F>
constexpr void sum_values(const call& c, const operands<T>& q, F value) {
  const layout& x = c.l[0];
  const layout& out = c.l[result];
  T* const o = q.p[result];
  const std::int64_t n = out.numel();
  for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
  std::int64_t so[max_rank]{};
  sum_strides(c.a, x, out, so);
  walk<2> w;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t s[2] = {so[d], x.str[d]};
    w.push(x.ext[d], s);
  }
  w.merge();
  using acc = typename math<T>::accumulator;
  w.each_run([&](const std::int64_t* off, std::int64_t count, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = q.p[0] + off[1];
    if (s[0] == 0) {
      acc total = acc(0);
      for (std::int64_t i = 0; i < count; ++i) total = total + value(static_cast<acc>(xx[i * s[1]]));
      *oo = static_cast<T>(static_cast<acc>(*oo) + total);
    } else if (s[0] == 1 && s[1] == 1) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < count; ++i) oo[i] = static_cast<T>(oo[i] + value(xx[i]));
    } else {
      for (std::int64_t i = 0; i < count; ++i) oo[i * s[0]] = static_cast<T>(oo[i * s[0]] + value(xx[i * s[1]]));
    }
  });
}
template <class T, bool Square>
constexpr void sum_into(const call& c, const operands<T>& q) {
  if constexpr (Square) sum_values(c, q, squared{});
  else sum_values(c, q, as_it_is{});
}
}  // namespace detail

template <>
struct kernel<op_code::sum> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::sum_into<T, false>(c, q);
    if (c.a.v[2] == 0) return;
    const T count = math<T>::from_count(detail::summed_count(c.a, c.l[0]));
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = q.p[result][i] / count;
  }
};

template <>
struct kernel<op_code::sumsq> {
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
    for (int d = 0; d < out.rank; ++d) {
      const std::int64_t s[2] = {out.str[d], si[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    const T count = math<T>::from_count(c.a.v[2] ? detail::summed_count(c.a, out) : 1);
    w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
      for (std::int64_t i = 0; i < n; ++i) q.p[result][off[0] + i * s[0]] = q.p[0][off[1] + i * s[1]] / count;
    });
  }
};

}  // namespace shardwise::host

// SPDX-License-Identifier: Apache-2.0
// Vector norms over dims, and their adjoint.
#pragma once

#include <shardwise/runtime/host/kernels/sum.hpp>
#include <shardwise/runtime/host/norm_math.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::host {
inline namespace SHARDWISE_HOST_BUILD {

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
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using acc = typename math<T>::accumulator;
    const int p = static_cast<int>(c.a.v[2]);
    const auto root = [p](acc total) { return static_cast<T>(norm_math<acc>::root(total, p)); };
    if (p == 1) detail::sum_values(c, q, detail::power<1>{p}, root);
    else if (p == 2) detail::sum_values(c, q, squared{}, root);
    else detail::sum_values(c, q, detail::power<0>{p}, root);
  }
};

// Operands: cotangent of the norms, the operand, the norms.
template <>
struct kernel<op_code::vector_norm_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& out = c.l[result];
    const int p = static_cast<int>(c.a.v[2]);
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
            q.p[0][off[1] + i * s[1]] *
            norm_math<T>::slope(q.p[1][off[2] + i * s[2]], q.p[2][off[3] + i * s[3]], p);
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::host

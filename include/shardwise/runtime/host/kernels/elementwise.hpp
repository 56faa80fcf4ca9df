// SPDX-License-Identifier: Apache-2.0
// Elementwise comparisons, and choices by a mask.
#pragma once

#include <shardwise/runtime/host/kernels/pointwise.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// out[i] = f(i-th offsets of the operands); operand K of the walk is input K-1.
template <int K, class F>
constexpr void each_offset(const call& c, F&& f) {
  const layout* in[K - 1]{};
  for (int k = 0; k < K - 1; ++k) in[k] = &c.l[k];
  walk<K> w;
  const layout& out = c.l[result];
  for (int d = 0; d < out.rank; ++d) {
    std::int64_t s[K]{};
    s[0] = out.str[d];
    for (int k = 1; k < K; ++k) s[k] = broadcast_stride(*in[k - 1], out.rank, d, out.global);
    w.push(out.ext[d], s);
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    std::int64_t at[K]{};
    for (int k = 0; k < K; ++k) at[k] = off[k];
    for (std::int64_t i = 0; i < n; ++i) {
      f(at);
      for (int k = 0; k < K; ++k) at[k] += s[k];
    }
  });
}

}  // namespace detail

#define SHARDWISE_X(name, ...)                                                        \
  template <>                                                                         \
  struct kernel<op_code::name> {                                                      \
    template <class T>                                                                \
    static constexpr void run(const call& c, const operands<T>& q, const step_env&) { \
      detail::each_offset<3>(c, [&](const std::int64_t* at) {                         \
        q.index_out[at[0]] = element<op_code::name>(T(0), q.p[0][at[1]], q.p[1][at[2]]) ? 1 : 0; \
      });                                                                             \
    }                                                                                 \
  };
SHARDWISE_COMPARISONS(SHARDWISE_X)
#undef SHARDWISE_X

template <>
struct kernel<op_code::where> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::each_offset<4>(
        c, [&](const std::int64_t* at) { q.p[result][at[0]] = q.index[at[1]] != 0 ? q.p[1][at[2]] : q.p[2][at[3]]; });
  }
};

template <>
struct kernel<op_code::mask_keep> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const bool zero_where = c.a.v[0] != 0;
    detail::each_offset<3>(c, [&](const std::int64_t* at) {
      q.p[result][at[0]] = (q.index[at[2]] != 0) == zero_where ? T(0) : q.p[0][at[1]];
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::host

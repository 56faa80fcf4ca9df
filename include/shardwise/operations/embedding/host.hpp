// SPDX-License-Identifier: Apache-2.0
// Rows of a table chosen by index on the host, and the table's gradient.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/kernel.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// A block of the table may hold some of its rows: the others are zeros in the result, for the ranks that own them to add.
template <>
struct kernel<op_code::embedding> {
  static constexpr cut_kind cut = cut_kind::looked_up;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& w = c.l[0];
    const layout* const both[2] = {&c.l[1], &c.l[result]};
    const std::int64_t n = w.ext[1], rows = w.global[0];
    each_row<2>(both, c.l[1].rank, [&](const std::int64_t* at) {
      const std::int64_t id = q.index[at[0]];
      if (id < 0 || id >= rows) detail::refuse_index("embedding", id, rows);
      const std::int64_t row = id - w.origin[0];
      T* const to = q.p[result] + at[1];
      if (row < 0 || row >= w.ext[0]) {
        for (std::int64_t i = 0; i < n; ++i) to[i] = T(0);
        return;
      }
      const T* const from = q.p[0] + row * w.str[0];
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * w.str[1]];
    });
  }
};

template <>
struct kernel<op_code::embedding_dw> {
  static constexpr cut_kind cut = cut_kind::gathered;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& dy = c.l[0];
    const layout& o = c.l[result];
    const std::int64_t n = o.ext[1], s = dy.str[dy.rank - 1];
    for (std::int64_t row = 0; row < o.ext[0]; ++row)
      for (std::int64_t i = 0; i < n; ++i) q.p[result][row * o.str[0] + i] = T(0);
    const layout* const both[2] = {&c.l[1], &dy};
    each_row<2>(both, c.l[1].rank, [&](const std::int64_t* at) {
      const std::int64_t row = q.index[at[0]] - o.origin[0];
      if (row < 0 || row >= o.ext[0]) return;
      T* const to = q.p[result] + row * o.str[0];
      const T* const from = q.p[0] + at[1];
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] + from[i * s];
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

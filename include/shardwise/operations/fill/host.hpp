// SPDX-License-Identifier: Apache-2.0
// Tensors in a frame of a number, and masks by position, on the host.
#pragma once

#include <shardwise/propagation/fill.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

template <>
struct kernel<op_code::constant_pad> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    const T value = math<T>::from(c.f);
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = value;
    const std::int64_t zero[max_rank]{};
    std::int64_t begin[max_rank]{};
    for (int d = 0; d < c.l[0].rank; ++d) begin[d] = rules::pad_before(c.a, d);
    copy_block<T>(q.p[0], c.l[0], zero, q.p[result], c.l[result], begin, c.l[0].ext);
  }
};

// tril keeps column - row <= diagonal, triu >=, by position in the whole matrix.
template <>
struct kernel<op_code::triangle> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout &x = c.l[0], &o = c.l[result];
    const auto of = attributes_of<triangle_attributes>(c.a);
    const bool upper = of.upper != 0;
    const int row = o.rank - 2, column = o.rank - 1;
    std::int64_t at[max_rank]{};
    const std::int64_t n = o.numel();
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t from = 0;
      for (int d = 0; d < o.rank; ++d) from += at[d] * x.str[d];
      const std::int64_t off = o.origin[column] + at[column] - o.origin[row] - at[row] - of.diagonal;
      q.p[result][i] = (upper ? off >= 0 : off <= 0) ? q.p[0][from] : T(0);
      for (int d = o.rank - 1; d >= 0 && ++at[d] == o.ext[d]; --d) at[d] = 0;
    }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

// SPDX-License-Identifier: Apache-2.0
// What reads and writes parts of tensors on the host: the operand in a frame of zeros, or over a part of another one.
#pragma once

#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Adjoint of slice: the operand in a frame of zeros.
template <>
struct kernel<op_code::pad> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    const auto of = attributes_of<slice_attributes>(c.a);
    begin[of.dim] = of.start;
    copy_block<T>(q.p[0], c.l[0], zero, q.p[result], c.l[result], begin, c.l[0].ext);
  }
};

// The second operand in its place within the first, which may be where the result is already.
template <>
struct kernel<op_code::slice_scatter> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    const auto of = attributes_of<slice_attributes>(c.a);
    begin[of.dim] = of.start;
    if (q.p[0] != q.p[result]) copy_block<T>(q.p[0], c.l[0], zero, q.p[result], c.l[result], zero, c.l[0].ext);
    copy_block<T>(q.p[1], c.l[1], zero, q.p[result], c.l[result], begin, c.l[1].ext);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

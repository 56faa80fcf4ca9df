// SPDX-License-Identifier: Apache-2.0
// Tensors side by side on the host.
#pragma once

#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

template <>
struct kernel<op_code::cat> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t zero[max_rank]{};
    std::int64_t begin[max_rank]{};
    for (int k = 0; k < c.inputs; ++k) {
      copy_block<T>(q.p[k], c.l[k], zero, q.p[result], c.l[result], begin, c.l[k].ext);
      begin[rules::joined_dim(c.a)] += c.l[k].ext[rules::joined_dim(c.a)];
    }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

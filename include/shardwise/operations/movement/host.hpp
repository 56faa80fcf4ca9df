// SPDX-License-Identifier: Apache-2.0
// Redistributions on the host that need no peer.
#pragma once

#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// The redistributions that need no peer; the others are the backend's collectives.
template <>
struct kernel<op_code::redistribute> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const std::int64_t n = o.numel();
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    if (c.kind == transition::take_chunk) {
      const int d = c.to.dim;
      begin[d] = o.origin[d] - x.origin[d];
      copy_block<T>(q.p[0], x, begin, q.p[result], o, zero, o.ext);
    } else if (c.kind == transition::place_chunk) {
      const int d = c.from.dim;
      for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
      begin[d] = x.origin[d] - o.origin[d];
      copy_block<T>(q.p[0], x, zero, q.p[result], o, begin, x.ext);
    } else if (c.coordinate == 0) {  // to_partial, or a copy
      copy_block<T>(q.p[0], x, zero, q.p[result], o, zero, o.ext);
    } else {
      for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

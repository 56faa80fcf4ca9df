// SPDX-License-Identifier: Apache-2.0
// The call of an opaque function on the host.
#pragma once

#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// What the user gave, on the blocks, which are stored densely.
template <>
struct kernel<op_code::opaque> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    opaque_block blocks[max_inputs + 1]{{q.p[result], c.l[result].numel()}};
    for (int k = 0; k < c.inputs; ++k) blocks[k + 1] = {q.p[k], c.l[k].numel()};
    c.function(blocks);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

// SPDX-License-Identifier: Apache-2.0
// Tensors side by side on a device.
#pragma once

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <>
struct kernel<op_code::cat> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t zeros[max_rank]{};
    std::int64_t begin[max_rank]{};
    for (int k = 0; k < c.inputs; ++k) {
      copy_block<T>(op_code::cat, as<T>(c.p[k]), c.l[k], zeros, as<T>(c.p[result]), c.l[result], begin, c.l[k].ext, ctx);
      begin[rules::joined_dim(c.a)] += c.l[k].ext[rules::joined_dim(c.a)];
    }
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

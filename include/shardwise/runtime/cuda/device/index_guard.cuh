// SPDX-License-Identifier: Apache-2.0
// index_guard: what a kernel does with an index that is out of range.
#pragma once

#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Reports the first index outside 0..limit-1 of a context and goes on with 0.
struct index_guard {
  index_fault* fault;
  std::int32_t node;

  __device__ std::int64_t checked(std::int64_t id, std::int64_t limit) const {
    if (id >= 0 && id < limit) return id;
    if (fault != nullptr && atomicCAS(&fault->node, -1, node) == -1) {
      fault->limits = 1;
      fault->index = id;
      fault->limit = limit;
    }
    return 0;
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

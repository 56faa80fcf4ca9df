// SPDX-License-Identifier: Apache-2.0
// The last block of a group to arrive goes on with what all of them have left in memory: a reduction cut into chunks is
// one kernel. Which block that is differs from run to run; what it adds, and in which order, does not.
#pragma once

#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Whether this block is the last of `count` to arrive at `ticket`; what the others wrote before is then visible to all its
// threads. All threads of all of these blocks call it; the counter is 0 before and afterwards.
__device__ inline bool last_to_arrive(std::uint32_t* ticket, std::uint32_t count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicInc(ticket, count - 1) == count - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

// What another block of this kernel wrote: from L2, since L1 may have an older copy of its neighbourhood.
template <class T>
__device__ T arrived(const T* p) {
  return __ldcg(p);
}
__device__ inline two_sums arrived(const two_sums* p) { return {__ldcg(&p->a), __ldcg(&p->b)}; }

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// launch: the one place where a kernel is started.
#pragma once

#include <shardwise/propagation/op.hpp>
#include <shardwise/runtime/cuda/error.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// A grid of 0 is an error of CUDA's: callers return before where there is nothing to do.
template <class... P, class... A>
void launch(op_code op, void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, const A&... a) {
  kernel<<<grid, block, 0, stream>>>(a...);
  check_launch(name_of(op));
}

// With so many bytes of shared memory, which allow_shared has allowed.
template <class... P, class... A>
void launch_shared(op_code op, void (*kernel)(P...), dim3 grid, dim3 block, int shared, cudaStream_t stream, const A&... a) {
  kernel<<<grid, block, static_cast<std::size_t>(shared), stream>>>(a...);
  check_launch(name_of(op));
}

// A number of the current device. Throws device_error where CUDA does not tell it.
inline std::int64_t device_attribute(cudaDeviceAttr what) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

// Before the launch of a kernel that takes more than 48 KB of shared memory. Throws device_error above what a block may have there.
template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

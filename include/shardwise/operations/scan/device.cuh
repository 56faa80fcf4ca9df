// SPDX-License-Identifier: Apache-2.0
// Running sums on devices, a thread for each line. Include it in one CUDA source of a program that calls cumsum.
#pragma once

#include <shardwise/operations/scan/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class T>
__global__ void __launch_bounds__(256) scan_lines(const __grid_constant__ host::scan_blocks b, const T* x, T* y) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < b.lines(); at += step)
    b.template add_up<double>(x, y, at);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::cumsum> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const host::scan_blocks b = host::scan_blocks_of(k);
    const std::int64_t blocks = (b.lines() + 255) / 256;
    if (blocks > 0)
      cuda::scan_lines<T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(b, k.in(0), k.out());
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::cumsum)

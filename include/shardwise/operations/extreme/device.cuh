// SPDX-License-Identifier: Apache-2.0
// The plain kernels on devices, a thread for each line. Include it in one CUDA source of a program that calls max or min along a
// dim.
#pragma once

#include <shardwise/operations/extreme/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// `values`, `indices`: null where nobody wants them.
template <bool Largest, class T>
__global__ void __launch_bounds__(256)
    extreme_lines(const __grid_constant__ host::extreme_blocks b, const T* x, T* values, std::int32_t* indices) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < b.lines(); at += step) {
    const std::int64_t place = host::extreme_place<math<T>, Largest>(b, x, at);
    if (values) values[at] = x[(at / b.inner * b.n + place) * b.inner + at % b.inner];
    if (indices) indices[at] = static_cast<std::int32_t>(place);
  }
}
template <bool Largest>
struct extreme_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const host::extreme_blocks b = host::extreme_blocks_of(k);
    const std::int64_t blocks = (b.lines() + 255) / 256;
    if (blocks > 0)
      extreme_lines<Largest, T>
          <<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(b, k.in(0), k.out(0), k.index_out(1));
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::max> : cuda::extreme_launch<true> {};
template <>
struct device_kernel<custom::min> : cuda::extreme_launch<false> {};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::max, shardwise::custom::min)

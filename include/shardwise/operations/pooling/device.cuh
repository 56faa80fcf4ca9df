// SPDX-License-Identifier: Apache-2.0
// The plain kernels on devices, a thread for each element of the result. Include it in one CUDA source of a program that pools.
#pragma once

#include <shardwise/operations/pooling/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// `values`, `indices`: null where nobody wants them.
template <class T>
__global__ void __launch_bounds__(256) max_pool_elements(const __grid_constant__ host::pool_planes b, const T* x, T* values,
                                                         std::int32_t* indices, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < size; at += step) {
    const std::int64_t place = host::largest_of_window<math<T>>(b, x, at);
    if (values) values[at] = x[at / (b.oh * b.ow) * b.h * b.w + place];
    if (indices) indices[at] = static_cast<std::int32_t>(b.in_whole(place));
  }
}
template <bool Back, class T>
__global__ void __launch_bounds__(256) position_elements(const __grid_constant__ host::pool_planes b, const T* x,
                                                         const std::int32_t* places, T* out, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < size; at += step)
    out[at] = Back ? host::sum_of_positions<T>(b, x, places, at) : host::at_position(b, x, places, at);
}
template <bool Back, class T>
__global__ void __launch_bounds__(256)
    mean_pool_elements(const __grid_constant__ host::pool_planes b, const T* x, T* out, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < size; at += step)
    out[at] = Back ? host::mean_of_windows_back<math<T>, T>(b, x, at) : host::mean_of_window<math<T>, T>(b, x, at);
}
inline unsigned pool_blocks(std::int64_t size) {
  const std::int64_t blocks = (size + 255) / 256;
  return static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
}

template <bool Back>
struct mean_pool_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    if (k.size() > 0)
      mean_pool_elements<Back, T>
          <<<pool_blocks(k.size()), 256, 0, stream>>>(host::one_result_planes(k, Back ? -1 : 0), k.in(0), k.out(), k.size());
  }
};

template <bool Back>
struct position_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    if (k.size() > 0)
      position_elements<Back, T><<<pool_blocks(k.size()), 256, 0, stream>>>(host::one_result_planes(k, Back ? -1 : 0),
                                                                            k.in(0), k.index(), k.out(), k.size());
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::max_pool2d> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    if (!k.wanted(0) && !k.wanted(1)) return;
    const host::pool_planes b = host::max_pool_planes(k);
    const std::int64_t size = b.planes * b.oh * b.ow;
    if (size > 0)
      cuda::max_pool_elements<T><<<cuda::pool_blocks(size), 256, 0, stream>>>(b, k.in(0), k.out(0), k.index_out(1), size);
  }
};
template <>
struct device_kernel<custom::max_pool2d_dx> : cuda::position_launch<true> {};
template <>
struct device_kernel<custom::max_pool2d_at> : cuda::position_launch<false> {};
template <>
struct device_kernel<custom::avg_pool2d> : cuda::mean_pool_launch<false> {};
template <>
struct device_kernel<custom::avg_pool2d_dx> : cuda::mean_pool_launch<true> {};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::max_pool2d, shardwise::custom::max_pool2d_dx, shardwise::custom::max_pool2d_at,
                         shardwise::custom::avg_pool2d, shardwise::custom::avg_pool2d_dx)

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
template <class Element, class T>
__global__ void __launch_bounds__(256) pool_elements(const __grid_constant__ host::pool_planes b, const T* x,
                                                     const std::int32_t* places, T* out, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < size; at += step)
    out[at] = Element::template at<math<T>, T>(b, x, places, at);
}
inline unsigned pool_blocks(std::int64_t size) {
  const std::int64_t blocks = (size + 255) / 256;
  return static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
}

// X: the operand's number that is x, or -1 of the result.
template <int X, class Element>
struct pool_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    if (k.size() > 0)
      pool_elements<Element, T>
          <<<pool_blocks(k.size()), 256, 0, stream>>>(host::one_result_planes(k, X), k.in(0), k.index(), k.out(), k.size());
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
struct device_kernel<custom::max_pool2d_dx> : cuda::pool_launch<-1, host::position_back_element> {};
template <>
struct device_kernel<custom::max_pool2d_at> : cuda::pool_launch<0, host::position_element> {};
template <>
struct device_kernel<custom::avg_pool2d> : cuda::pool_launch<0, host::mean_element> {};
template <>
struct device_kernel<custom::avg_pool2d_dx> : cuda::pool_launch<-1, host::mean_back_element> {};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::max_pool2d, shardwise::custom::max_pool2d_dx, shardwise::custom::max_pool2d_at,
                         shardwise::custom::avg_pool2d, shardwise::custom::avg_pool2d_dx)

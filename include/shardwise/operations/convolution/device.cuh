// SPDX-License-Identifier: Apache-2.0
// The plain kernels on devices, a thread for each element, operands and results of any strides. Include it in one CUDA source of a
// program that calls conv2d.
#pragma once

#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Result: which of the three, each an element of two operands.
template <class Result, class T>
__global__ void __launch_bounds__(256) convolution_kernel(const __grid_constant__ host::convolution_blocks b,
                                                          const __grid_constant__ host::convolution_places places,
                                                          const T* x, const T* y, T* out, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step)
    places.template put<Result, T>(b, x, y, out, i);
}
template <class Result, class T>
void convolve(const host::convolution_blocks& b, const kernel_arguments<T>& k, cudaStream_t stream) {
  const std::int64_t blocks = (k.size() + 255) / 256;
  if (blocks > 0)
    convolution_kernel<Result, T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(
        b, host::places_of(k), k.in(0), k.in(1), k.out(), k.size());
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::conv2d> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::convolve<host::convolution_result>(host::blocks_of(k, 0, 1, -1), k, stream);
  }
};
template <>
struct device_kernel<custom::conv2d_dx> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::convolve<host::convolution_dx_result>(host::blocks_of(k, -1, 1, 0), k, stream);
  }
};
template <>
struct device_kernel<custom::conv2d_dw> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::convolve<host::convolution_dw_result>(host::blocks_of(k, 1, -1, 0), k, stream);
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::conv2d, shardwise::custom::conv2d_dx, shardwise::custom::conv2d_dw)

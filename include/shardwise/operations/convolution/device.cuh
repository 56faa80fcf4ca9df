// SPDX-License-Identifier: Apache-2.0
// The plain kernels on devices, a thread for each element. Include it in one CUDA source of a program that calls conv2d.
#pragma once

#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Which of the three: each computes an element of its result from two operands.
struct convolution_element {
  template <class T>
  __device__ static void at(const host::convolution_blocks& b, const T* x, const T* y, std::int64_t i, T* out) {
    host::convolution_at<T>(b, x, y, i, out);
  }
};
struct convolution_dx_element {
  template <class T>
  __device__ static void at(const host::convolution_blocks& b, const T* x, const T* y, std::int64_t i, T* out) {
    host::convolution_dx_at<T>(b, x, y, i, out);
  }
};
struct convolution_dw_element {
  template <class T>
  __device__ static void at(const host::convolution_blocks& b, const T* x, const T* y, std::int64_t i, T* out) {
    host::convolution_dw_at<T>(b, x, y, i, out);
  }
};

template <class Element, class T>
__global__ void __launch_bounds__(256) convolution_kernel(const __grid_constant__ host::convolution_blocks b, const T* x,
                                                          const T* y, T* out, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step)
    Element::at(b, x, y, i, out);
}
template <class Element, class T>
void convolve(const host::convolution_blocks& b, const kernel_arguments<T>& k, cudaStream_t stream) {
  const std::int64_t blocks = (k.size() + 255) / 256;
  if (blocks > 0)
    convolution_kernel<Element, T>
        <<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(b, k.in(0), k.in(1), k.out(), k.size());
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::conv2d> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::convolve<cuda::convolution_element>(host::blocks_of(k, 0, 1, -1), k, stream);
  }
};
template <>
struct device_kernel<custom::conv2d_dx> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::convolve<cuda::convolution_dx_element>(host::blocks_of(k, -1, 1, 0), k, stream);
  }
};
template <>
struct device_kernel<custom::conv2d_dw> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    cuda::convolve<cuda::convolution_dw_element>(host::blocks_of(k, 1, -1, 0), k, stream);
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::conv2d, shardwise::custom::conv2d_dx, shardwise::custom::conv2d_dw)

// SPDX-License-Identifier: Apache-2.0
// conv2d and its adjoints on devices: by the registered library where it takes the call (cuda::convolution_report() says so), else by
// plain kernels, a thread for each element, operands and results of any strides; elements of two bytes are added up in float. Include it
// in one CUDA source of a program that calls conv2d on float or double; on elements of two bytes, too: device_low.cuh.
#pragma once

#include <shardwise/operations/convolution/device_library.cuh>
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
    places.template put<Result, computed_in<T>>(b, x, y, out, i);
}
template <class Result, class T>
void convolve(const host::convolution_blocks& b, const kernel_arguments<T>& k, cudaStream_t stream) {
  const std::int64_t blocks = (k.size() + 255) / 256;
  if (blocks > 0)
    convolution_kernel<Result, T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(
        b, host::places_of(k), k.in(0), k.in(1), k.out(), k.size());
}

// X, Weight, Y: operands that are x, the weight and y; -1: the result.
template <class Result, int X, int Weight, int Y>
struct convolution_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, context& ctx) {
    if (k.size() == 0) return;
    if (!convolution_launches::take_library<X, Weight, Y>(k, ctx))
      convolve<Result>(host::blocks_of(k, X, Weight, Y), k, ctx.stream);
  }
  template <class T>
  static void prepare(const kernel_arguments<T>& k, context& ctx) {
    convolution_launches::prepare_library<X, Weight, Y>(k, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::conv2d> : cuda::convolution_launch<host::convolution_result, 0, 1, -1> {};
template <>
struct device_kernel<custom::conv2d_dx> : cuda::convolution_launch<host::convolution_dx_result, -1, 1, 0> {};
template <>
struct device_kernel<custom::conv2d_dw> : cuda::convolution_launch<host::convolution_dw_result, 1, -1, 0> {};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::conv2d, shardwise::custom::conv2d_dx, shardwise::custom::conv2d_dw)

// SPDX-License-Identifier: Apache-2.0
// The plain kernels on devices, a thread for each element of the result. more_functions.cuh includes it, in one CUDA source of a program
// that calls interpolate.
#pragma once

#include <shardwise/operations/interpolation/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <bool Back, class T>
__global__ void __launch_bounds__(256)
    interpolate_elements(const __grid_constant__ host::resized b, const T* in, T* out, std::int64_t size) {
  using sum = computed_in<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    if constexpr (Back) host::interpolate_back_element<math<sum>, sum>(b, in, out, i);
    else host::interpolate_element<math<sum>, sum>(b, in, out, i);
  }
}
template <bool Back>
struct interpolate_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const std::int64_t blocks = (k.size() + 255) / 256;
    if (blocks > 0)
      interpolate_elements<Back, T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(
          host::resized_of<Back>(k), k.in(0), k.out(), k.size());
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::interpolate> : cuda::interpolate_launch<false> {};
template <>
struct device_kernel<custom::interpolate_dx> : cuda::interpolate_launch<true> {};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::interpolate, shardwise::custom::interpolate_dx)

// SPDX-License-Identifier: Apache-2.0
// Rotations of pairs on devices, a thread for each pair of a position, which turns it in all heads of one batch. Include it in one
// CUDA source of a program that calls rotary_embedding.
#pragma once

#include <shardwise/operations/rotary/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class C, class T>
__global__ void __launch_bounds__(256)
    rotate(const __grid_constant__ host::rotary_block r, const T* x, T* y, std::int64_t pairs) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x, half = r.size / 2;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < pairs; n += step) {
    const std::int64_t i = n % half, t = n / half % r.times, b = n / half / r.times;
    const double angle =
        (r.first + static_cast<double>(t)) * ::pow(r.base, -2 * static_cast<double>(i) / static_cast<double>(r.size));
    double sine, cosine;
    ::sincos(angle, &sine, &cosine);
    const C c = static_cast<C>(cosine), s = static_cast<C>(r.back ? -sine : sine);
    for (std::int64_t h = 0; h < r.others; ++h) {
      const std::int64_t at = r.at(b, t, h);
      const C u = static_cast<C>(x[at + r.one(i)]), v = static_cast<C>(x[at + r.two(i)]);
      y[at + r.one(i)] = static_cast<T>(u * c - v * s);
      y[at + r.two(i)] = static_cast<T>(v * c + u * s);
    }
  }
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::rotary_embedding> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const host::rotary_block r = host::rotary_block_of(k);
    const std::int64_t pairs = r.batch * r.times * (r.size / 2), blocks = (pairs + 255) / 256;
    if (pairs > 0)
      cuda::rotate<T, T>
          <<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, stream>>>(r, k.in(0), k.out(), pairs);
  }
};

}  // namespace shardwise::inline v0_1

SHARDWISE_DEVICE_KERNELS(shardwise::custom::rotary_embedding)

// SPDX-License-Identifier: Apache-2.0
// noise: numbers for products that are only timed. A device that multiplies zeros draws less power and may run faster.
#pragma once

#include <cstdint>

#include <shardwise/propagation/op.hpp>
#include <shardwise/runtime/cuda/device/launch.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Which bits of a pair of 32-bit words are drawn, and which are set besides: of every element the sign and the fraction are drawn,
// and the exponent is that of 0.5.
struct noise_bits {
  std::uint32_t drawn[2], set[2];

  static constexpr noise_bits of(cudaDataType type) {
    if (type == CUDA_R_64F) return {{0xFFFFFFFFU, 0x800FFFFFU}, {0, 0x3FE00000U}};
    if (type == CUDA_R_16BF) return {{0x807F807FU, 0x807F807FU}, {0x3F003F00U, 0x3F003F00U}};
    if (type == CUDA_R_16F) return {{0x83FF83FFU, 0x83FF83FFU}, {0x38003800U, 0x38003800U}};
    return {{0x807FFFFFU, 0x807FFFFFU}, {0x3F000000U, 0x3F000000U}};
  }
};

namespace detail {

template <class Word>
__global__ void __launch_bounds__(256) noise_kernel(Word* to, std::int64_t n, const noise_bits bits) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < n; i += std::int64_t{gridDim.x} * 256) {
    Word h = static_cast<Word>(i) * 2654435761U + 12345U;
    h ^= h >> 15;
    h *= 2246822519U;
    h ^= h >> 13;
    to[i] = (h & bits.drawn[i & 1]) | bits.set[i & 1];
  }
}

}  // namespace detail

// Fills the words that lie whole in `bytes` bytes from p, which elements of `type` are stored at.
inline void fill_with_noise(void* p, std::int64_t bytes, cudaDataType type, cudaStream_t stream) {
  const std::int64_t n = bytes / 4;
  if (n == 0 || reinterpret_cast<std::uintptr_t>(p) % 8 != 0) return;
  const std::int64_t blocks = (n + 255) / 256;
  launch(op_code::einsum, &detail::noise_kernel<std::uint32_t>, static_cast<unsigned>(blocks < 4096 ? blocks : 4096), 256,
         stream, static_cast<std::uint32_t*>(p), n, noise_bits::of(type));
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

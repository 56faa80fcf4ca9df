// SPDX-License-Identifier: Apache-2.0
// Further elementwise functions on devices, by the host's formulas. Include it in one CUDA source of a program that calls them; of
// elements of two bytes write SHARDWISE_DEVICE_KERNELS_OF beside it.
#pragma once

#include <shardwise/operations/activation/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

template <class T>
struct further_math<cuda::math<T>> {
#define SHARDWISE_X(name, function)                        \
  static __device__ T name(T x) {                          \
    if constexpr (sizeof(T) == 4) return ::function##f(x); \
    else return ::function(x);                             \
  }
  SHARDWISE_X(floor, floor)
  SHARDWISE_X(ceil, ceil)
  SHARDWISE_X(round, rint)  // of two the even one
  SHARDWISE_X(expm1, expm1)
  SHARDWISE_X(log1p, log1p)
#undef SHARDWISE_X
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_DEVICE_KERNELS(shardwise::custom::floor, shardwise::custom::ceil, shardwise::custom::round, shardwise::custom::erf,
                         shardwise::custom::erf_dx, shardwise::custom::log1p, shardwise::custom::log1p_dx,
                         shardwise::custom::expm1, shardwise::custom::expm1_dx, shardwise::custom::softplus,
                         shardwise::custom::softplus_dx, shardwise::custom::leaky_relu, shardwise::custom::leaky_relu_dx,
                         shardwise::custom::elu, shardwise::custom::elu_dx, shardwise::custom::swiglu,
                         shardwise::custom::swiglu_gate, shardwise::custom::swiglu_up)

// SPDX-License-Identifier: Apache-2.0
// set_env: what kernels read of a step, stored in the device's memory.
#pragma once

#include <cmath>

#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

template <class Env>
__global__ void store_env(const Env env, Env* where) {
  *where = env;
}

}  // namespace detail

// The numbers that follow are computed here, on the host, so that they are the host kernels' own to the bit.
inline void set_env(const step_env& env, device_env* where, cudaStream_t stream) {
  const double t = static_cast<double>(env.step);
  const device_env all{env, env.lr / (1 - std::pow(env.beta1, t)), 1 / std::sqrt(1 - std::pow(env.beta2, t))};
  launch(op_code::input, &detail::store_env<device_env>, 1, 1, stream, all, where);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

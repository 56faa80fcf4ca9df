// SPDX-License-Identifier: Apache-2.0
// Powers and roots of norms on a device, for the operation and for collectives of partial norms.
#pragma once

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class T>
struct norm_power {
  int order;
  __device__ T operator()(T x) const {
    const T a = x < T(0) ? -x : x;
    T r = a;
    for (int k = 1; k < order; ++k) r *= a;
    return r;
  }
};

template <class T>
struct norm_root {
  int order;
  __device__ T operator()(T s) const {
    return order == 1 ? s : order == 2 ? ::sqrt(s) : ::pow(s, T(1) / static_cast<T>(order));
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

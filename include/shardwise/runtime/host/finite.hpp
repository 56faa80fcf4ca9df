// SPDX-License-Identifier: Apache-2.0
// Whether numbers are all finite: for kernels that multiply what nobody sees by zero, which is 0 for finite numbers alone.
#pragma once

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/summation.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// n numbers side by side.
template <class T>
bool is_finite(const T* x, std::int64_t n) {
  T worst = T(0);
  const auto look = [&] {
    constexpr int lanes = 4 * sum_lanes;
    T lane[lanes]{};
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int k = 0; k < lanes; ++k) lane[k] = lane[k] + x[i + k] * T(0);
    for (int k = 0; i + k < n; ++k) lane[k] = lane[k] + x[i + k] * T(0);
    for (int k = 0; k < lanes; ++k) worst = worst + lane[k];
  };
  if (!try_widest(look)) look();
  return worst == T(0);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

// SPDX-License-Identifier: Apache-2.0
// The loss reads a running mean behind its update: the gradient of the mean would be lost.
// expect: in place: the loss reads a buffer behind a write of what depends on a parameter, and no gradient flows through a buffer
#include "buffer_step.hpp"

struct forward {
  constexpr auto operator()(const auto& h, const auto& running_mean) const {
    const auto mean = sw::redistribute<dp, sw::reduced>(sw::mean<0>(h));
#ifdef SHARDWISE_FAIL
    sw::lerp_(running_mean, mean, 0.1);
    return h - running_mean;
#else
    const auto now = sw::lerp(running_mean, mean, 0.1);
    sw::copy_(running_mean, now);
    return h - now;
#endif
  }
};
constexpr auto bytes = step<forward>::peak_bytes;

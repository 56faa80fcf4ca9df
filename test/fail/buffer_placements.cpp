// SPDX-License-Identifier: Apache-2.0
// The mean over a split batch is written into a buffer before its summands are added up.
// expect: redistribute the other operand to the tensor's placements first
// expect(text): operation: copy_; operands: float[6] (dp: reduced), float[6] (dp: partial<>)
#include "buffer_step.hpp"

struct forward {
  constexpr auto operator()(const auto& h, const auto& running_mean) const {
#ifdef SHARDWISE_FAIL
    sw::copy_(running_mean, sw::mean<0>(h));
#else
    sw::copy_(running_mean, sw::redistribute<dp, sw::reduced>(sw::mean<0>(h)));
#endif
    return h;
  }
};
constexpr auto bytes = step<forward>::peak_bytes;

// SPDX-License-Identifier: Apache-2.0
// A dynamic loss scale's step, once for all devices: torch.amp.GradScaler's rule.
#pragma once

#include <shardwise/propagation/attributes.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::operations {

// factor: [0] what updates multiply gradients by, less than 0: the step is skipped; [1] how many steps were skipped before.
// now: the scale. counts: [0] good steps since the scale last changed; [1] skipped steps. squares: the sum of those of all scaled gradients.
// Law: a step is skipped if that sum is not finite, which it is not if a gradient is not (and in floats from gradients of 1e19 on), or
// if one over the scale is not. The factor is one over the scale, with Clips times min(1, max_norm / (norm + 1e-6)) of the divided
// gradients' norm. After a skipped step the scale is divided by backoff; after `interval` good ones multiplied by growth, unless
// that is infinite. M: the device's mathematics.
template <class M, class T>
constexpr void next_loss_scale(const adjust_scale_attributes& of, T max_norm, T* factor, T* now, T* counts, T squares) {
  const T inverse = T(1) / *now;
  const bool good = squares - squares == T(0) && inverse - inverse == T(0);
  factor[1] = counts[1];
  if (!good) {
    factor[0] = T(0) - T(1);
    *now = *now / M::from(static_cast<double>(of.backoff));
    counts[0] = T(0);
    counts[1] = counts[1] + T(1);
    return;
  }
  factor[0] = inverse;
  if (of.clips != 0) {
    const T ratio = max_norm / (M::sqrt(squares) * inverse + M::from(1e-6));
    if (!M::less(T(1), ratio)) factor[0] = ratio * inverse;
  }
  counts[0] = counts[0] + T(1);
  if (counts[0] == M::from(static_cast<double>(of.interval))) {
    const T larger = *now * M::from(static_cast<double>(of.growth));
    if (larger - larger == T(0)) *now = larger;
    counts[0] = T(0);
  }
}

}  // namespace shardwise::inline v0_1::operations

SHARDWISE_UNFUSED_END

// SPDX-License-Identifier: Apache-2.0
// A channels-last output seen in extents that its storage does not have in one run, as eager PyTorch refuses it.
// expect: view: the tensor is not stored densely in this order
// expect: where<shardwise::op::reshape,

#include <shardwise/graph/functions/convolution.hpp>

#include "typed_tp.hpp"

constexpr auto seen(const auto& x, const auto& w) {
  const auto y = sw::contiguous<sw::memory_format::channels_last>(sw::conv2d(x, w));
#ifdef SHARDWISE_FAIL
  return sw::view<6, -1>(y);
#else
  return sw::reshape<6, 24>(y);
#endif
}
using y = decltype(seen(real<sw::shape<2, 3, 5, 5>>{}, real<sw::shape<8, 3, 3, 3>>{}));

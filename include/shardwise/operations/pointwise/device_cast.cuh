// SPDX-License-Identifier: Apache-2.0
// Casts on a device: a launcher for each pair of element types.
#pragma once

#include <shardwise/runtime/cuda/device/convert.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class From, class To>
void cast_elements(const call& c, context& ctx) {
  const layout* const in[1] = {&c.l[0]};
  detail::convert(op_code::cast, host::broadcast_walk<2>(c.l[result], in), as<To>(c.p[result]), as<const From>(c.p[0]), ctx);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Redistributions on a device that need no peer.
#pragma once

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// The kinds that communicate are the collectives' business.
template <>
struct kernel<op_code::redistribute> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &x = c.l[0], &o = c.l[result];
    const std::int64_t zeros[max_rank]{};
    std::int64_t begin[max_rank]{};
    const auto copy = [&](const std::int64_t* from, const std::int64_t* to, const std::int64_t* ext) {
      copy_block<T>(op_code::redistribute, as<T>(c.p[0]), x, from, as<T>(c.p[result]), o, to, ext, ctx);
    };
    if (communicates(c.kind)) throw device_error("redistribute", "a kind that communicates is no local kernel");
    if (c.kind == transition::take_chunk) {
      begin[c.to.dim] = o.origin[c.to.dim] - x.origin[c.to.dim];
      copy(begin, zeros, o.ext);
    } else if (c.kind == transition::place_chunk) {
      zero<T>(c, ctx);
      begin[c.from.dim] = x.origin[c.from.dim] - o.origin[c.from.dim];
      copy(zeros, begin, x.ext);
    } else if (c.coordinate == 0) {  // to_partial, or a copy
      copy(zeros, zeros, o.ext);
    } else {
      zero<T>(c, ctx);
    }
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

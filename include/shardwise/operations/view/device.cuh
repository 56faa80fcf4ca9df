// SPDX-License-Identifier: Apache-2.0
// What reads and writes parts of tensors on a device: the operand in a frame of zeros, or over a part of another one.
#pragma once

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Adjoint of slice: the operand in a frame of zeros.
template <>
struct kernel<op_code::pad> {
  template <class T>
  static void run(const call& c, context& ctx) {
    zero<T>(c, ctx);
    const std::int64_t from[max_rank]{};
    std::int64_t to[max_rank]{};
    const auto of = attributes_of<slice_attributes>(c.a);
    to[of.dim] = of.start;
    copy_block<T>(op_code::pad, as<T>(c.p[0]), c.l[0], from, as<T>(c.p[result]), c.l[result], to, c.l[0].ext, ctx);
  }
};

// The second operand in its place within the first, which may be where the result is already.
template <>
struct kernel<op_code::slice_scatter> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t from[max_rank]{};
    std::int64_t to[max_rank]{};
    if (c.p[0] != c.p[result])
      copy_block<T>(op_code::slice_scatter, as<T>(c.p[0]), c.l[0], from, as<T>(c.p[result]), c.l[result], to, c.l[0].ext,
                    ctx);
    const auto of = attributes_of<slice_attributes>(c.a);
    to[of.dim] = of.start;
    copy_block<T>(op_code::slice_scatter, as<T>(c.p[1]), c.l[1], from, as<T>(c.p[result]), c.l[result], to, c.l[1].ext, ctx);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

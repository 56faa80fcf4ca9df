// SPDX-License-Identifier: Apache-2.0
// Blocks moved within a rank: pads, and the redistributions that need no peer.
#pragma once

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Adjoint of slice: the operand in a frame of zeros.
template <>
struct kernel<op_code::pad> {
  template <class T>
  static void run(const call& c, context& ctx) {
    zero<T>(c, ctx);
    const std::int64_t from[max_rank]{};
    std::int64_t to[max_rank]{};
    to[c.a.v[0]] = c.a.v[1];
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
      copy_block<T>(op_code::slice_scatter, as<T>(c.p[0]), c.l[0], from, as<T>(c.p[result]), c.l[result], to, c.l[0].ext, ctx);
    to[c.a.v[0]] = c.a.v[1];
    copy_block<T>(op_code::slice_scatter, as<T>(c.p[1]), c.l[1], from, as<T>(c.p[result]), c.l[result], to, c.l[1].ext, ctx);
  }
};

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
}  // namespace shardwise::cuda

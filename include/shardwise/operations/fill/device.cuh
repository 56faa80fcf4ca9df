// SPDX-License-Identifier: Apache-2.0
// Tensors in a frame of a number, and masks by position, on a device.
#pragma once

#include <shardwise/propagation/fill.hpp>
#include <shardwise/operations/leaf/device.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <>
struct kernel<op_code::constant_pad> {
  template <class T>
  static void run(const call& c, context& ctx) {
    kernel<op_code::fill>::template run<T>(c, ctx);
    const std::int64_t zeros[max_rank]{};
    std::int64_t begin[max_rank]{};
    for (int d = 0; d < c.l[0].rank; ++d) begin[d] = rules::pad_before(c.a, d);
    copy_block<T>(op_code::constant_pad, as<T>(c.p[0]), c.l[0], zeros, as<T>(c.p[result]), c.l[result], begin, c.l[0].ext,
                  ctx);
  }
};

namespace detail {

// at: result, operand, and, which is no memory, column - row in the whole matrix
template <class T>
__global__ void __launch_bounds__(256)
    triangle_kernel(const __grid_constant__ strided<3> w, const T* x, T* o, std::int64_t diagonal, bool upper) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t at[3];
    w.offsets(i, at);
    const std::int64_t off = at[2] - diagonal;
    o[at[0]] = (upper ? off >= 0 : off <= 0) ? x[at[1]] : T(0);
  }
}

}  // namespace detail

template <>
struct kernel<op_code::triangle> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &x = c.l[0], &o = c.l[result];
    const int row = o.rank - 2, column = o.rank - 1;
    walk<3> w;
    for (int d = 0; d < o.rank; ++d) {
      const std::int64_t s[3] = {o.str[d], x.str[d], d == column ? 1 : d == row ? -1 : 0};
      w.push(o.ext[d], s);
    }
    w.merge();
    const auto of = attributes_of<triangle_attributes>(c.a);
    const auto go = [&](const walk<3>& piece, const std::int64_t* base) {
      const strided<3> s = make_strided(piece, base);
      launch(op_code::triangle, &detail::triangle_kernel<T>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256,
             ctx.stream, s, static_cast<const T*>(c.p[0]), as<T>(c.p[result]), of.diagonal, of.upper != 0);
    };
    const std::int64_t origin[3] = {0, 0, o.origin[column] - o.origin[row]};
    each_piece(w, origin, most_points, go);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

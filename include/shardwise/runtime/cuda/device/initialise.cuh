// SPDX-License-Identifier: Apache-2.0
// initialise_block on a device: the values that the host gives a block, bit for bit, computed where they are stored.
#pragma once

#include <string_view>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/program/initial_values.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// A double whose steps are rounded one by one: the compiler would fuse a product with the sum that it goes into.
struct unfused {
  double x;
  __host__ __device__ constexpr explicit unfused(double value) : x(value) {}
  __host__ __device__ constexpr explicit operator double() const { return x; }
  friend __device__ unfused operator+(unfused a, unfused b) { return unfused(__dadd_rn(a.x, b.x)); }
  friend __device__ unfused operator-(unfused a, unfused b) { return unfused(__dsub_rn(a.x, b.x)); }
  friend __device__ unfused operator*(unfused a, unfused b) { return unfused(__dmul_rn(a.x, b.x)); }
  friend __device__ unfused operator/(unfused a, unfused b) { return unfused(__ddiv_rn(a.x, b.x)); }
};

template <class T>
struct drawn_element {
  T* to;
  double scale;
  std::uint64_t seed;
  std::uint32_t stream;
  init_kind kind;
  __device__ void operator()(const std::int64_t* at) const {  // in the block; in the whole tensor
    to[at[0]] = static_cast<T>(static_cast<double>(runtime::initial_value<unfused>(kind, scale, seed, stream, at[1])));
  }
};

}  // namespace detail

// The block is stored densely at p. Queued on the stream.
template <class T>
void initialise_block(T* p, const layout& l, init_kind kind, double scale, std::uint64_t seed, std::string_view path,
                      context& ctx) {
  if (l.numel() == 0) return;
  walk<2> w;
  std::int64_t origin[2]{}, whole[max_rank], below = 1;
  for (int d = l.rank - 1; d >= 0; --d) {
    whole[d] = below;
    origin[1] += l.origin[d] * below;
    below *= l.global[d];
  }
  for (int d = 0; d < l.rank; ++d) {
    const std::int64_t s[2] = {l.str[d], whole[d]};
    w.push(l.ext[d], s);
  }
  w.merge();
  const auto go = [&](const walk<2>& piece, const std::int64_t* base) {
    const strided<2> s = make_strided(piece, base);
    launch(op_code::param, &detail::each_point_kernel<detail::drawn_element<T>, 2>,
           grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s,
           detail::drawn_element<T>{p, scale, seed, runtime::stream_of(path), kind});
  };
  each_piece(w, origin, most_points, go);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

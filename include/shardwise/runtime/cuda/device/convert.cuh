// SPDX-License-Identifier: Apache-2.0
// convert: elements of one type out of those of another, at copy rate where both lie densely.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// As on the host: rounded to nearest, ties to even; to integers towards zero, beyond their range the nearest end, of a NaN 0; to
// bool whether it is not zero. An int64 that is no int32 becomes the nearest one, which no table has a row for: what reads it
// as an id reports it.
template <class To, class From>
__device__ To converted(From x) {
  using C = computed_in<From>;
  const C v = static_cast<C>(x);
  if constexpr (std::is_same_v<To, bool>) return !(v == C(0));
  else if constexpr (std::is_same_v<To, std::int32_t> && std::is_same_v<From, std::int64_t>)
    return v < -2147483647 - 1 ? -2147483647 - 1 : v > 2147483647 ? 2147483647 : static_cast<To>(v);
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<C>) return v == v ? static_cast<To>(v) : To(0);
  else return static_cast<To>(v);
}

// Operand 0 is the result; points are packs of V elements.
template <class To, class From, int V>
__global__ void __launch_bounds__(256) conversion_kernel(const __grid_constant__ strided<2> w, To* o, const From* x) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[2];
    w.offsets(i, off);
    const pack<From, V> from = *reinterpret_cast<const pack<From, V>*>(x + off[1]);
    pack<To, V> to;
#pragma unroll
    for (int v = 0; v < V; ++v) to.v[v] = converted<To>(from.v[v]);
    *reinterpret_cast<pack<To, V>*>(o + off[0]) = to;
  }
}

// Packs: 16 bytes of the wider type, so that neighbouring threads read and write neighbouring bytes.
template <class To, class From>
void convert(op_code op, const walk<2>& whole, To* o, const From* x, context& ctx) {
  constexpr int V = is_floating_element<To> && is_floating_element<From>
                        ? (vector_of<To> < vector_of<From> ? vector_of<To> : vector_of<From>)
                        : 1;
  each_piece(whole, [&](const walk<2>& piece, const std::int64_t* from) {
    const auto fits = [&](const walk<2>& w, const std::int64_t* base) {
      return w.ext[w.rank - 1] % V == 0 && w.str[1][w.rank - 1] == 1 && steps_by_packs<V>(w, 0, o + base[0], sizeof(To)) &&
             steps_by_packs<V>(w, 1, x + base[1], sizeof(From));
    };
    in_packs<V>(piece, from, fits, [&](auto width, const walk<2>& w, const std::int64_t* base) {
      constexpr int N = decltype(width)::value;
      const strided<2> s = strided_packs<N>(w, base);
      launch(op, &conversion_kernel<To, From, N>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s, o,
             x);
    });
  });
}
// Of n elements that lie side by side.
template <class To, class From>
void convert(op_code op, std::int64_t n, To* o, const From* x, context& ctx) {
  walk<2> w;
  const std::int64_t step[2] = {1, 1};
  w.push(n, step);
  convert(op, w, o, x, ctx);
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// map: result[i] = f(operands[i]) over a merged walk, 16 bytes at a time where all operands allow it. Elements of two bytes are read
// as floats, f computes in float, and its value is rounded once.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Operand 0 is the result. Operands may be the same memory, element for element (nothing is __restrict__).
template <class T, int K>
struct pointers {
  T* p[K];
};

template <class T, int V>
struct alignas(sizeof(T) * V) pack {
  T v[V];
};

template <class T>
inline constexpr int vector_of = static_cast<int>(16 / sizeof(T));

namespace detail {

template <class F, class T, int V, std::size_t... I>
__device__ void apply(const F& f, pack<T, V>* x, std::index_sequence<I...>) {
  for (int v = 0; v < V; ++v) x[0].v[v] = static_cast<T>(f(static_cast<computed_in<T>>(x[I + 1].v[v])...));
}

// Points are packs of V elements: along the last dim an operand steps by 1 (read as one pack) or 0 (one element).
template <class T, class F, int K, int V>
__global__ void __launch_bounds__(256)
    map_kernel(const __grid_constant__ strided<K> w, const __grid_constant__ pointers<T, K> q, const F f) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[K];
    w.offsets(i, off);
    pack<T, V> x[K];
#pragma unroll
    for (int k = 1; k < K; ++k) {
      const T* const from = q.p[k] + off[k];
      if (V > 1 && w.str[k][w.rank - 1] != 0) {
        x[k] = *reinterpret_cast<const pack<T, V>*>(from);
      } else {
        const T one = *from;
        for (int v = 0; v < V; ++v) x[k].v[v] = one;
      }
    }
    apply(f, x, std::make_index_sequence<K - 1>{});
    *reinterpret_cast<pack<T, V>*>(q.p[0] + off[0]) = x[0];
  }
}

// Whether operand k of the walk, elements of `size` bytes that begin at p, can be read or written in packs of V: unit steps, or
// none, from aligned addresses.
template <int V, int K>
bool steps_by_packs(const walk<K>& w, int k, const void* p, std::size_t size) {
  const int last = w.rank - 1;
  if (w.str[k][last] == 0 && k > 0) return true;
  if (w.str[k][last] != 1 || reinterpret_cast<std::uintptr_t>(p) % (V * size) != 0) return false;
  for (int d = 0; d < last; ++d)
    if (w.str[k][d] % V != 0) return false;
  return true;
}
template <class T, int K>
bool steps_by_packs(const walk<K>& w, const std::int64_t* base, const pointers<T, K>& q) {
  constexpr int V = vector_of<T>;
  bool all = w.ext[w.rank - 1] % V == 0;
  for (int k = 0; k < K; ++k) all = all && steps_by_packs<V>(w, k, q.p[k] + base[k], sizeof(T));
  return all;
}

// go(V, walk, base) where fits(walk, base) says that packs of V cover it; of a long run all but the few elements left over; else
// go(1, walk, base).
template <int V, int K, class Fits, class Go>
void in_packs(walk<K> w, const std::int64_t* base, const Fits& fits, const Go& go) {
  constexpr std::integral_constant<int, V> packs{};
  constexpr std::integral_constant<int, 1> single{};
  const std::int64_t tail = w.ext[w.rank - 1] % V;
  if (w.rank == 1 && tail != 0 && w.ext[0] >= 4096) {
    w.ext[0] -= tail;
    if (fits(w, base)) {
      go(packs, w, base);
      std::int64_t rest[K];
      for (int k = 0; k < K; ++k) rest[k] = base[k] + w.ext[0] * w.str[k][0];
      w.ext[0] = tail;
      go(single, w, rest);
      return;
    }
    w.ext[0] += tail;
  }
  if (fits(w, base)) go(packs, w, base);
  else go(single, w, base);
}

// The walk in packs of V.
template <int V, int K>
strided<K> strided_packs(walk<K> w, const std::int64_t* base) {
  const int last = w.rank - 1;
  w.ext[last] /= V;
  for (int k = 0; k < K; ++k) w.str[k][last] *= V;
  return make_strided(w, base);
}

}  // namespace detail

// The walk is merged; its operands are q's, in the same order.
template <class T, int K, class F>
void map(op_code op, const walk<K>& whole, const pointers<T, K>& q, const F& f, context& ctx) {
  each_piece(whole, [&](const walk<K>& piece, const std::int64_t* from) {
    detail::in_packs<vector_of<T>>(
        piece, from, [&](const walk<K>& w, const std::int64_t* base) { return detail::steps_by_packs(w, base, q); },
        [&](auto width, const walk<K>& w, const std::int64_t* base) {
          constexpr int V = decltype(width)::value;
          const strided<K> s = detail::strided_packs<V>(w, base);
          launch(op, &detail::map_kernel<T, F, K, V>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s,
                 q, f);
        });
  });
}

namespace detail {

template <class F, int K>
__global__ void __launch_bounds__(256) each_point_kernel(const __grid_constant__ strided<K> w, const F f) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += gridDim.x * blockDim.x) {
    std::int64_t off[K];
    w.offsets(i, off);
    f(off);
  }
}

}  // namespace detail

// f(offsets) for each point, where element types differ.
template <int K, class F>
void launch_points(op_code op, const walk<K>& whole, const F& f, context& ctx) {
  each_piece(whole, [&](const walk<K>& w, const std::int64_t* base) {
    const strided<K> s = make_strided(w, base);
    launch(op, &detail::each_point_kernel<F, K>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s, f);
  });
}

// What only moves, moves as whole numbers of the same size: every bit stays, and types of one size share kernels.
template <class T>
using word_of = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// Results are stored densely, so writes are coalesced; a transposed operand is read by the element, at the price of a
// 32-byte sector each, of which the cache serves the neighbours.
struct identity {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

// Copies the block of `x` that begins at x_begin into that of `o` beginning at o_begin, `ext` elements a dim.
template <class T>
void copy_block(op_code op, T* x, const layout& lx, const std::int64_t* x_begin, T* o, const layout& lo,
                const std::int64_t* o_begin, const std::int64_t* ext, context& ctx) {
  using word = word_of<T>;
  walk<2> w;
  for (int d = 0; d < lx.rank; ++d) {
    const std::int64_t s[2] = {lo.str[d], lx.str[d]};
    w.push(ext[d], s);
    x += x_begin[d] * lx.str[d];
    o += o_begin[d] * lo.str[d];
  }
  w.merge();
  map(op, w, pointers<word, 2>{{reinterpret_cast<word*>(o), reinterpret_cast<word*>(x)}}, identity{}, ctx);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// map: result[i] = f(operands[i]) over a merged walk, 16 bytes at a time where all operands allow it.
#pragma once

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
  for (int v = 0; v < V; ++v) x[0].v[v] = f(x[I + 1].v[v]...);
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

// Whether the walk can step by packs: unit steps from aligned pointers, whole packs in a row.
template <class T, int K>
bool steps_by_packs(const walk<K>& w, const std::int64_t* base, const pointers<T, K>& q) {
  constexpr int V = vector_of<T>;
  const int last = w.rank - 1;
  if (w.ext[last] % V != 0 || w.str[0][last] != 1) return false;
  for (int k = 0; k < K; ++k) {
    if (w.str[k][last] == 0) continue;
    if (w.str[k][last] != 1 || reinterpret_cast<std::uintptr_t>(q.p[k] + base[k]) % 16 != 0) return false;
    for (int d = 0; d < last; ++d)
      if (w.str[k][d] % V != 0) return false;
  }
  return true;
}

template <class T, int V, int K, class F>
void map_launch(op_code op, const walk<K>& w, const std::int64_t* base, const pointers<T, K>& q, const F& f, context& ctx) {
  walk<K> packs = w;
  const int last = w.rank - 1;
  packs.ext[last] /= V;
  for (int k = 0; k < K; ++k) packs.str[k][last] *= V;
  const strided<K> s = make_strided(packs, base);
  launch(op, &map_kernel<T, F, K, V>, grid_for((std::int64_t{s.count} + 255) / 256, ctx), 256, ctx.stream, s, q, f);
}

}  // namespace detail

// The walk is merged; its operands are q's, in the same order.
template <class T, int K, class F>
void map(op_code op, const walk<K>& whole, const pointers<T, K>& q, const F& f, context& ctx) {
  each_piece(whole, [&](walk<K> w, const std::int64_t* base) {
    constexpr int V = vector_of<T>;
    const int last = w.rank - 1;
    const std::int64_t tail = w.ext[last] % V;
    if (w.rank == 1 && tail != 0 && w.ext[0] >= 4096) {  // a long run: packs, then the few elements left
      w.ext[0] -= tail;
      if (detail::steps_by_packs(w, base, q)) {
        detail::map_launch<T, V>(op, w, base, q, f, ctx);
        std::int64_t rest[K];
        for (int k = 0; k < K; ++k) rest[k] = base[k] + w.ext[0] * w.str[k][0];
        w.ext[0] = tail;
        detail::map_launch<T, 1>(op, w, rest, q, f, ctx);
        return;
      }
      w.ext[0] += tail;
    }
    if (detail::steps_by_packs(w, base, q)) detail::map_launch<T, V>(op, w, base, q, f, ctx);
    else detail::map_launch<T, 1>(op, w, base, q, f, ctx);
  });
}

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
  walk<2> w;
  for (int d = 0; d < lx.rank; ++d) {
    const std::int64_t s[2] = {lo.str[d], lx.str[d]};
    w.push(ext[d], s);
    x += x_begin[d] * lx.str[d];
    o += o_begin[d] * lo.str[d];
  }
  w.merge();
  map(op, w, pointers<T, 2>{{o, x}}, identity{}, ctx);
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

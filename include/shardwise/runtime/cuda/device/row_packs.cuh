// SPDX-License-Identifier: Apache-2.0
// row_packs: a row that a warp, or more threads, keep in registers, read and written 16 bytes at a time, computed with in another type
// than it is stored in where that has two bytes.
#pragma once

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/dtype.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// What sums over a row or a column are added in: of elements of two bytes float has digits enough.
template <class T>
using added_in = std::conditional_t<sizeof(T) == 2, float, double>;

inline constexpr int few_row_packs = 4, most_row_packs = 8;  // a thread's; a warp's row has at most 32 times as many

template <class T, int Packs, int Threads = warp_threads>
struct row_packs {
  static constexpr int V = vector_of<T>;
  using C = computed_in<T>;
  C v[Packs][V];

  // f(pack, its first element) for those of this lane.
  template <class F>
  static __device__ void each(std::int64_t n, int lane, F&& f) {
#pragma unroll
    for (int p = 0; p < Packs; ++p)
      if (const int i = (p * Threads + lane) * V; i < n) f(p, i);
  }
  __device__ void load(const T* row, std::int64_t n, int lane) {
    each(n, lane, [&](int p, int i) {
      const pack<T, V> x = *reinterpret_cast<const pack<T, V>*>(row + i);
#pragma unroll
      for (int k = 0; k < V; ++k) v[p][k] = static_cast<C>(x.v[k]);
    });
  }
};

// Whether rows of n elements can be kept so, wherever the rows of these operands begin.
template <class T>
constexpr bool fits_packs(std::int64_t n, std::int64_t threads = warp_threads, int packs = most_row_packs) {
  return n > 0 && n % vector_of<T> == 0 && n <= threads * vector_of<T> * packs;
}
// Whether operand k of a walk over rows begins each of them, of elements that lie side by side, at a multiple of 16 bytes.
template <class T, int K>
bool begins_packs(const walk<K>& rows, int k, const void* p, std::int64_t step) {
  bool whole = step == 1 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  for (int d = 0; d < rows.rank; ++d) whole = whole && rows.str[k][d] % vector_of<T> == 0;
  return whole;
}

// row(team, offsets) for every point of the walk, a warp each.
template <int K, class Row>
void each_row_of_warps(op_code op, const walk<K>& rows, const Row& row, context& ctx) {
  each_piece(rows, [&](const walk<K>& w, const std::int64_t* base) {
    const strided<K> s = make_strided(w, base);
    launch(op, &detail::row_kernel<Row, K, warp_threads>,
           grid_for((std::int64_t{s.count} + rows_in_block - 1) / rows_in_block, ctx), warp_threads * rows_in_block,
           ctx.stream, s, row);
  });
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Attention of double on devices: a block for each tile of queries of a head. Copies of values run beside the scores, those of
// the next keys beside the weighted sum.
#pragma once

#include <shardwise/operations/attention/device_registers.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// Scores of a tile from the products; of keys that a query does not see the lowest number. `w`: room for the tile, of which a thread
// reads what it has written; so what a call seldom has costs no registers and one copy of its code.
template <class Tile, class C>
__device__ void score(C (&s)[Tile::rows][Tile::columns], C* w, const host::attention_call<C, C>& x, std::int64_t b,
                      std::int64_t h, std::int64_t first_query, std::int64_t first_key, int ty, int tx) {
  constexpr int rows = Tile::rows, columns = Tile::columns;
  if (is_plain(x)) {
    const bool all = sees_all<Tile>(x, first_query, first_key);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int c = 0; c < columns; ++c) s[r][c] *= x.scale;
      if (all) continue;
      const seen_columns seen(x, first_query + ty + Tile::y * r, first_key, Tile::keys);
#pragma unroll
      for (int c = 0; c < columns; ++c)
        if (!seen.holds(tx + Tile::x * c)) s[r][c] = host::math<C>::lowest();
    }
    return;
  }
  const auto at = [&](int r, int c) { return (ty + Tile::y * r) * Tile::weight_stride + tx + Tile::x * c; };
#pragma unroll
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int c = 0; c < columns; ++c) w[at(r, c)] = s[r][c];
#pragma unroll 1
  for (int n = 0; n < rows * columns; ++n) {
    const int r = n / columns, c = n % columns;
    const std::int64_t i = first_query + ty + Tile::y * r, j = first_key + tx + Tile::x * c;
    w[at(r, c)] = is_seen(x, b, h, i, j) ? biased(x, b, h, i, j, w[at(r, c)]) : host::math<C>::lowest();
  }
#pragma unroll
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int c = 0; c < columns; ++c) s[r][c] = w[at(r, c)];
}

// Drops of the weights that a thread has written.
template <class Tile, class C>
__device__ void drop(C* w, const host::attention_call<C, C>& x, host::attention_drops& drops, std::int64_t b, std::int64_t h,
                     std::int64_t first_query, std::int64_t first_key, int ty, int tx) {
#pragma unroll 1
  for (int n = 0; n < Tile::rows * Tile::columns; ++n) {
    const int row = ty + Tile::y * (n / Tile::columns), column = tx + Tile::x * (n % Tile::columns);
    C& weight = w[row * Tile::weight_stride + column];
    if (weight != C(0)) weight *= kept(x, drops, b, h, first_query + row, first_key + column);
  }
}

// Weights of the tile, to w; the largest scores and the sums of exponentials go on, and so does out's scale.
template <class Tile, class C>
__device__ void weigh(C* w, C (&o)[Tile::rows][Tile::numbers], C (&top)[Tile::rows], C (&total)[Tile::rows],
                      const C (&s)[Tile::rows][Tile::columns], int ty, int tx) {
#pragma unroll
  for (int r = 0; r < Tile::rows; ++r) {
    C largest = s[r][0], sum = C(0);
#pragma unroll
    for (int c = 1; c < Tile::columns; ++c) largest = largest > s[r][c] ? largest : s[r][c];
    largest = row_max<Tile::x>(largest);
    const C before = top[r];
    top[r] = before > largest ? before : largest;
    const C base = host::detail::finite_or_zero(top[r]);
#pragma unroll
    for (int c = 0; c < Tile::columns; ++c) {
      const C weight = math<C>::exp(s[r][c] - base);
      sum += weight;
      w[(ty + Tile::y * r) * Tile::weight_stride + tx + Tile::x * c] = weight;
    }
    const C factor = before == top[r] ? C(1) : math<C>::exp(before - base);
    total[r] = total[r] * factor + row_sum<Tile::x>(sum);
#pragma unroll
    for (int c = 0; c < Tile::numbers; ++c) o[r][c] *= factor;
  }
}

template <class Tile, class C>
__global__ void __launch_bounds__(Tile::threads)
    attend_in_registers(const __grid_constant__ host::attention_call<C, C> x,
                        const __grid_constant__ host::attention_block<C> out, C* lse, double p, std::int64_t tiles) {
  extern __shared__ __align__(16) unsigned char attention_shared[];
  C* const q = reinterpret_cast<C*>(attention_shared);
  C *const k = q + Tile::queries * Tile::stride, *const v = k + Tile::keys * Tile::stride,
           *const w = v + Tile::keys * Tile::stride;
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  const ordered_place at(x.batch, x.heads, tiles, Tile::queries, true);
  const int tx = static_cast<int>(threadIdx.x) % Tile::x, ty = static_cast<int>(threadIdx.x) / Tile::x;
  const std::int64_t last = at.first + Tile::queries < x.queries ? at.first + Tile::queries - 1 : x.queries - 1;
  const std::int64_t kh = at.h / x.group, begin = x.first_key(at.first), end = x.end_key(last);
  host::attention_drops drops = drops_of(x, p);
  C o[Tile::rows][Tile::numbers], top[Tile::rows], total[Tile::rows];
  fetch<Tile::queries, Tile>(q, x.q, at.b, at.h, at.first, x.queries, size);
  for (int careful = 0; careful < 2; ++careful) {
    clear(o);
    for (int r = 0; r < Tile::rows; ++r) {
      top[r] = host::math<C>::lowest();
      total[r] = C(0);
    }
    if (begin < end) fetch<Tile::keys, Tile>(k, x.k, at.b, kh, begin, end, size);
    for (std::int64_t first_key = begin; first_key < end; first_key += Tile::keys) {
      await_copies();
      __syncthreads();  // keys are there; nobody reads values or weights
      fetch<Tile::keys, Tile>(v, x.v, at.b, kh, first_key, end, value_size);
      C s[Tile::rows][Tile::columns];
      multiply_tiles<Tile>(s, q, k, size, ty, tx);
      score<Tile>(s, w, x, at.b, at.h, at.first, first_key, ty, tx);
      weigh<Tile>(w, o, top, total, s, ty, tx);
      if (x.key) drop<Tile>(w, x, drops, at.b, at.h, at.first, first_key, ty, tx);
      await_copies();
      __syncthreads();  // values and weights are there; nobody reads keys
      if (first_key + Tile::keys < end) fetch<Tile::keys, Tile>(k, x.k, at.b, kh, first_key + Tile::keys, end, size);
      add_weighted_tile<Tile, false>(careful != 0, o, w, v, ty, tx);
    }
    if (!__syncthreads_or(has_none(o) ? 1 : 0)) break;
  }
  await_copies();  // where no query sees any key
#pragma unroll
  for (int r = 0; r < Tile::rows; ++r) {
    const std::int64_t i = at.first + ty + Tile::y * r;
    const bool none = total[r] == C(0);
#pragma unroll
    for (int c = 0; c < Tile::numbers; ++c) o[r][c] = none ? C(0) : o[r][c] / total[r];
    if (lse && tx == 0 && i < x.queries)
      lse[(at.b * x.heads + at.h) * x.queries + i] =
          none ? host::math<C>::lowest() : host::detail::finite_or_zero(top[r]) + math<C>::log(total[r]);
  }
  if (out.data) store_tile<Tile, false>(out, at.b, at.h, at.first, x.queries, o, value_size, ty, tx);
}

template <class Tile, class C>
void attend_by_tiles(const host::attention_call<C, C>& x, const host::attention_block<C>& out, C* lse, cudaStream_t stream) {
  constexpr int bytes = Tile::bytes(1, 2, 1);
  const std::int64_t tiles = tiles_of(x.queries, Tile::queries), blocks = tiles * x.heads * x.batch;
  if (blocks == 0) return;
  allow_shared(&attend_in_registers<Tile, C>, bytes);
  attend_in_registers<Tile, C><<<static_cast<unsigned>(blocks), Tile::threads, static_cast<std::size_t>(bytes), stream>>>(
      x, out, lse, x.a.dropout, tiles);
}
template <class C>
void attend_by_registers(const host::attention_call<C, C>& x, const host::attention_block<C>& out, C* lse,
                         cudaStream_t stream) {
  const bool is_short = x.size <= 64 && x.value_size <= 64;
  if (is_short) attend_by_tiles<tiling<C, 64, 32, 32, 8>>(x, out, lse, stream);
  else attend_by_tiles<tiling<C, 128, 32, 32, 16>>(x, out, lse, stream);
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

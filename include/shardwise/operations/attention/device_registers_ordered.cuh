// SPDX-License-Identifier: Apache-2.0
// The adjoint of attention of float where later keys are hidden, in one kernel over tiles of keys: five products, not the seven of
// device_registers_backward.cuh. Price: dq is read and written in memory once for each tile of keys that its queries see.
#pragma once

#include <shardwise/operations/attention/device_registers_backward.cuh>
#include <shardwise/operations/attention/library_bytes.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// Law: dq of a tile of queries is the sum over the tiles of keys that they see, added in their order, so equal calls give equal bits. A
// block has one tile of keys and waits for its turn; `turns` has for each tile of queries how many have been added. It waits for earlier
// tiles of keys alone, whose blocks have smaller numbers, so that the device begins them before it: all blocks come to an end.
template <class Tile, class C>
struct dq_in_turns {
  const host::attention_call<C, C>& x;
  const host::attention_gradients<C, C>& g;
  int* turns;

  __device__ void add(std::int64_t b, std::int64_t h, std::int64_t first_query, std::int64_t first_key,
                      const C (&part)[Tile::rows][Tile::numbers], int size, int ty, int tx) const {
    const std::int64_t tiles = (x.queries + Tile::queries - 1) / Tile::queries;
    int* const turn = turns + (b * x.heads + h) * tiles + first_query / Tile::queries;
    const int mine = static_cast<int>(first_key / Tile::keys - x.first_key(first_query) / Tile::keys);
    if (threadIdx.x == 0) {
      while (*static_cast<volatile int*>(turn) != mine) {
      }
      __threadfence();
    }
    __syncthreads();
    const bool whole = is_whole(g.dq, size);
#pragma unroll
    for (int r = 0; r < Tile::rows; ++r) {
      const std::int64_t t = first_query + result_row<Tile, false>(r, ty);
      if (t >= x.queries) continue;
      C* const row = g.dq.at(b, h, t);
#pragma unroll
      for (int c = 0; c < Tile::numbers; c += Tile::wide) {
        const int column = (c / Tile::wide * Tile::x + tx) * Tile::wide;
        numbers_16<C> all;
#pragma unroll
        for (int e = 0; e < Tile::wide; ++e) all.v[e] = part[r][c + e];
        if (whole && column < size) {
          if (mine > 0) {  // not from a cache of this multiprocessor, which others' sums do not reach
            const float4 before = __ldcg(reinterpret_cast<const float4*>(row + column));
            all.v[0] += before.x, all.v[1] += before.y, all.v[2] += before.z, all.v[3] += before.w;
          }
          *reinterpret_cast<numbers_16<C>*>(row + column) = all;
        }
#pragma unroll
        for (int e = 0; e < Tile::wide; ++e)
          if (!whole && column + e < size) row[column + e] = mine > 0 ? __ldcg(row + column + e) + all.v[e] : all.v[e];
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      *static_cast<volatile int*>(turn) = mine + 1;
    }
  }
};

template <class Tile, class C>
__global__ void __launch_bounds__(Tile::threads)
    attend_back_in_order(const __grid_constant__ host::attention_call<C, C> x,
                         const __grid_constant__ host::attention_gradients<C, C> g, double p, std::int64_t tiles,
                         int* turns) {
  extern __shared__ __align__(16) unsigned char attention_shared[];
  const adjoint_tiles<Tile, true, C> m(attention_shared, x, g);
  const ordered_place at(x.batch, x.key_heads, tiles, Tile::keys, false);
  const dq_in_turns<Tile, C> queries{x, g, turns};
  host::attention_drops drops = drops_of(x, p);
  C dk[Tile::key_rows][Tile::numbers], dv[Tile::key_rows][Tile::numbers];
  m.fetch_k(at.b, at.h * x.group, at.first);
  m.fetch_v(at.b, at.h * x.group, at.first);
  for (int careful = 0; careful < 2; ++careful) {
    const bool plain = careful == 0 && is_plain(x);
    clear(dk);
    clear(dv);
    seeing_queries<Tile, C> of(x, at.h, at.first);
    if (of.is_there()) m.fetch_dout(at.b, of.h, of.first);
    __pipeline_commit();
    while (of.is_there()) {
      const std::int64_t h = of.h, first_query = of.first;
      m.fetch_q(at.b, h, first_query);
      __pipeline_commit();
      m.weigh(plain, drops, at.b, h, first_query, at.first);
      add_weighted_tile<Tile, true>(careful != 0, dv, m.p, m.dout, m.ty, m.tx);
      __syncthreads();  // nobody reads dout
      of.next();
      if (of.is_there()) m.fetch_dout(at.b, of.h, of.first);
      __pipeline_commit();
      add_weighted_tile<Tile, true>(careful != 0, dk, m.ds, m.q, m.ty, m.tx);
      if (careful == 0) {  // each part of dq is added once, so it is looked at before it is
        C dq[Tile::rows][Tile::numbers];
        clear(dq);
        add_weighted_tile<Tile, false>(false, dq, m.ds, m.k, m.ty, m.tx);
        if (__syncthreads_or(has_none(dq) ? 1 : 0)) {
          if (plain) {
            __pipeline_wait_prior(0);
            __syncthreads();
            m.fetch_dout(at.b, h, first_query);
            __pipeline_commit();
            m.fetch_q(at.b, h, first_query);
            __pipeline_commit();
            m.weigh(false, drops, at.b, h, first_query, at.first);
          }
          clear(dq);
          add_weighted_tile<Tile, false>(true, dq, m.ds, m.k, m.ty, m.tx);
          __syncthreads();
          if (plain && of.is_there()) m.fetch_dout(at.b, of.h, of.first);
          __pipeline_commit();
        }
        queries.add(at.b, h, first_query, at.first, dq, m.size, m.ty, m.tx);
      }
      __syncthreads();
    }
    if (!__syncthreads_or(has_none(dk) || has_none(dv) ? 1 : 0)) break;
  }
  await_copies();  // where no query sees any of them
  store_tile<Tile, true>(g.dk, at.b, at.h, at.first, x.keys, dk, m.size, m.ty, m.tx);
  store_tile<Tile, true>(g.dv, at.b, at.h, at.first, x.keys, dv, m.value_size, m.ty, m.tx);
}

// Whether every tile of queries sees some key by its place: else nobody would write its dq. Where all keys are seen blocks would wait for
// each other from their first tile on.
template <class Tile, class C>
bool is_in_order(const host::attention_call<C, C>& x) {
  if (x.a.causal == 0 && x.a.window <= 0) return false;
  for (std::int64_t first = 0; first < x.queries; first += Tile::queries) {
    const std::int64_t last = first + Tile::queries < x.queries ? first + Tile::queries - 1 : x.queries - 1;
    if (x.end_key(last) <= x.first_key(first)) return false;
  }
  return true;
}

// turns: scratch of operations::attention_turn_bytes, or null. Returns whether the adjoint is queued.
template <class C>
bool attend_back_in_turns(const host::attention_call<C, C>& x, const host::attention_gradients<C, C>& g, void* turns,
                          cudaStream_t stream) {
  if constexpr (sizeof(C) == 4) {
    using Tile = tiling<C, operations::attention_turn_size, operations::attention_turn_queries, 64, 16, 8>;
    constexpr int bytes = adjoint_tiles<Tile, true, C>::bytes;
    const std::int64_t tiles = tiles_of(x.keys, Tile::keys), blocks = tiles * x.key_heads * x.batch;
    if (!turns || blocks == 0 || x.size > Tile::size || x.value_size > Tile::size || !g.dq.data || !g.dk.data ||
        !g.dv.data || !is_in_order<Tile>(x))
      return false;
    const std::int64_t of_queries = x.batch * x.heads * tiles_of(x.queries, Tile::queries);
    check(cudaMemsetAsync(turns, 0, static_cast<std::size_t>(of_queries) * sizeof(int), stream), "cudaMemsetAsync");
    allow_shared(&attend_back_in_order<Tile, C>, bytes);
    attend_back_in_order<Tile, C><<<static_cast<unsigned>(blocks), Tile::threads, static_cast<std::size_t>(bytes), stream>>>(
        x, g, x.a.dropout, tiles, static_cast<int*>(turns));
    return true;
  } else {
    return false;
  }
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// The adjoint of attention of double on devices, without atomic sums: one frame, once over tiles of queries for dq and once
// over tiles of keys for dk and dv. Price: scores and the products of dout with values are computed in both.
#pragma once

#include <shardwise/operations/attention/device_registers.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// A block's tiles in shared memory: of q, dout, k and v, of the gradient of the products of q and k (ds) and, of keys, of weights (p).
// Of queries ds lies where v has been read, so that more blocks have room.
template <class Tile, bool OfKeys, class C>
struct adjoint_tiles {
  static constexpr int bytes = Tile::bytes(2, 2, OfKeys ? 2 : 0);
  static_assert(OfKeys || Tile::queries * Tile::weight_stride <= Tile::keys * Tile::stride);
  const host::attention_call<C, C>& x;
  const host::attention_gradients<C, C>& g;
  C *q, *dout, *k, *v, *ds, *p;
  int size, value_size, ty, tx;

  __device__ adjoint_tiles(unsigned char* shared, const host::attention_call<C, C>& call,
                           const host::attention_gradients<C, C>& gradients)
      : x(call),
        g(gradients),
        q(reinterpret_cast<C*>(shared)),
        dout(q + Tile::queries * Tile::stride),
        k(dout + Tile::queries * Tile::stride),
        v(k + Tile::keys * Tile::stride),
        ds(OfKeys ? v + Tile::keys * Tile::stride : v),
        p(ds + Tile::queries * Tile::weight_stride),
        size(static_cast<int>(call.size)),
        value_size(static_cast<int>(call.value_size)),
        ty(static_cast<int>(threadIdx.x) / Tile::x),
        tx(static_cast<int>(threadIdx.x) % Tile::x) {}

  __device__ void fetch_q(std::int64_t b, std::int64_t h, std::int64_t first) const {
    fetch<Tile::queries, Tile>(q, x.q, b, h, first, x.queries, size);
  }
  __device__ void fetch_dout(std::int64_t b, std::int64_t h, std::int64_t first) const {
    fetch<Tile::queries, Tile>(dout, g.dout, b, h, first, x.queries, value_size);
  }
  __device__ void fetch_k(std::int64_t b, std::int64_t h, std::int64_t first) const {
    fetch<Tile::keys, Tile>(k, x.k, b, h / x.group, first, x.keys, size);
  }
  __device__ void fetch_v(std::int64_t b, std::int64_t h, std::int64_t first) const {
    fetch<Tile::keys, Tile>(v, x.v, b, h / x.group, first, x.keys, value_size);
  }
  __device__ int at(int r, int c) const { return (ty + Tile::y * r) * Tile::weight_stride + tx + Tile::x * c; }

  // Of the tiles ds, and p of keys. Copies are under way: first of dout or v, then of q or k, which runs beside the first product.
  __device__ void weigh(bool plain, host::attention_drops& drops, std::int64_t b, std::int64_t h, std::int64_t first_query,
                        std::int64_t first_key) const {
    C s[Tile::rows][Tile::columns], dp[Tile::rows][Tile::columns];
    __pipeline_wait_prior(1);
    __syncthreads();
    multiply_tiles<Tile>(dp, dout, v, value_size, ty, tx);
    __pipeline_wait_prior(0);
    __syncthreads();  // nobody reads v
    multiply_tiles<Tile>(s, q, k, size, ty, tx);
    if (plain) weigh_plainly(s, dp, b, h, first_query, first_key);
    else weigh_each(s, dp, drops, b, h, first_query, first_key);
    __syncthreads();
  }

 private:
  // A query's lse, for exp(score - lse): of queries that see nothing, and behind the last, such that it is 0 of all scores.
  __device__ C lse_of(std::int64_t row, bool is_query) const {
    const C none = host::math<C>::lowest(), lse = is_query ? g.lse[row] : none;
    return lse == none ? -none : lse;
  }
  __device__ void weigh_plainly(const C (&s)[Tile::rows][Tile::columns], const C (&dp)[Tile::rows][Tile::columns],
                                std::int64_t b, std::int64_t h, std::int64_t first_query, std::int64_t first_key) const {
    const bool all = sees_all<Tile>(x, first_query, first_key);
#pragma unroll
    for (int r = 0; r < Tile::rows; ++r) {
      const std::int64_t i = first_query + ty + Tile::y * r, row = (b * x.heads + h) * x.queries + i;
      const C lse = lse_of(row, i < x.queries), delta = i < x.queries ? g.delta[row] : C(0);
      const seen_columns seen(x, i, first_key, Tile::keys);
#pragma unroll
      for (int c = 0; c < Tile::columns; ++c) {
        const bool is_seen = all || seen.holds(tx + Tile::x * c);
        const C weight = math<C>::exp((is_seen ? x.scale * s[r][c] : host::math<C>::lowest()) - lse);
        ds[at(r, c)] = weight * (dp[r][c] - delta) * x.scale;
        if (OfKeys) p[at(r, c)] = weight;
      }
    }
  }
  // With every option, and with nothing of what is not seen. A thread's numbers go through shared memory, where it reads what it has
  // written: so one copy of this code does.
  __device__ void weigh_each(C (&s)[Tile::rows][Tile::columns], const C (&dp)[Tile::rows][Tile::columns],
                             host::attention_drops& drops, std::int64_t b, std::int64_t h, std::int64_t first_query,
                             std::int64_t first_key) const {
    constexpr int columns = Tile::columns, all = Tile::rows * columns;
    const auto query = [&](int n) { return first_query + ty + Tile::y * (n / columns); };
    const auto key = [&](int n) { return first_key + tx + Tile::x * (n % columns); };
    const std::int64_t row = (b * x.heads + h) * x.queries;
    each([&](int r, int c) { ds[at(r, c)] = s[r][c]; });
#pragma unroll 1
    for (int n = 0; n < all; ++n) {
      C& weight = ds[at(n / columns, n % columns)];
      const C none = host::math<C>::lowest(), lse = query(n) < x.queries ? g.lse[row + query(n)] : none;
      const bool seen = lse != none && is_seen(x, b, h, query(n), key(n));
      weight = seen ? math<C>::exp(biased(x, b, h, query(n), key(n), weight) - lse) : C(-1);
    }
    each([&](int r, int c) {
      s[r][c] = ds[at(r, c)];
      ds[at(r, c)] = dp[r][c];
    });
#pragma unroll 1
    for (int n = 0; n < all; ++n) {
      const int to = at(n / columns, n % columns);
      const C keep = kept(x, drops, b, h, query(n), key(n));
      ds[to] = ds[to] * keep - (query(n) < x.queries ? g.delta[row + query(n)] : C(0));
      if (OfKeys) p[to] = keep;
    }
    each([&](int r, int c) {
      const bool unseen = s[r][c] < C(0);
      ds[at(r, c)] = unseen ? C(0) : s[r][c] * ds[at(r, c)] * x.scale;
      if (OfKeys) p[at(r, c)] = unseen ? C(0) : s[r][c] * p[at(r, c)];
    });
  }
  template <class F>
  __device__ static void each(F&& f) {
#pragma unroll
    for (int r = 0; r < Tile::rows; ++r)
#pragma unroll
      for (int c = 0; c < Tile::columns; ++c) f(r, c);
  }
};

template <class Tile, class C>
__global__ void __launch_bounds__(Tile::threads)
    attend_back_queries_in_registers(const __grid_constant__ host::attention_call<C, C> x,
                                     const __grid_constant__ host::attention_gradients<C, C> g, double p,
                                     std::int64_t tiles) {
  extern __shared__ __align__(16) unsigned char attention_shared[];
  const adjoint_tiles<Tile, false, C> m(attention_shared, x, g);
  const ordered_place at(x.batch, x.heads, tiles, Tile::queries, true);
  const std::int64_t last = at.first + Tile::queries < x.queries ? at.first + Tile::queries - 1 : x.queries - 1;
  const std::int64_t end = x.end_key(last);
  host::attention_drops drops = drops_of(x, p);
  C dq[Tile::rows][Tile::numbers];
  m.fetch_q(at.b, at.h, at.first);
  m.fetch_dout(at.b, at.h, at.first);
  for (int careful = 0; careful < 2; ++careful) {
    const bool plain = careful == 0 && is_plain(x);
    clear(dq);
    for (std::int64_t first_key = x.first_key(at.first); first_key < end; first_key += Tile::keys) {
      __syncthreads();
      m.fetch_v(at.b, at.h, first_key);
      __pipeline_commit();
      m.fetch_k(at.b, at.h, first_key);
      __pipeline_commit();
      m.weigh(plain, drops, at.b, at.h, at.first, first_key);
      add_weighted_tile<Tile, false>(careful != 0, dq, m.ds, m.k, m.ty, m.tx);
    }
    if (!__syncthreads_or(has_none(dq) ? 1 : 0)) break;
  }
  await_copies();  // where none sees any key
  store_tile<Tile, false>(g.dq, at.b, at.h, at.first, x.queries, dq, m.size, m.ty, m.tx);
}

// The tiles of queries that see a tile of keys, of all heads of its group in their order.
template <class Tile, class C>
struct seeing_queries {
  const host::attention_call<C, C>& x;
  std::int64_t first_key, end_head, h, first;

  __device__ seeing_queries(const host::attention_call<C, C>& call, std::int64_t key_head, std::int64_t of_key)
      : x(call), first_key(of_key), end_head((key_head + 1) * call.group), h(key_head * call.group), first(-Tile::queries) {
    next();
  }
  __device__ bool is_there() const { return h < end_head; }
  __device__ void next() {
    for (first += Tile::queries; h < end_head; ++h, first = 0)
      for (; first < x.queries; first += Tile::queries) {
        const std::int64_t last = first + Tile::queries < x.queries ? first + Tile::queries - 1 : x.queries - 1;
        if (x.end_key(last) > first_key && x.first_key(first) < first_key + Tile::keys) return;
      }
  }
};

template <class Tile, class C>
__global__ void __launch_bounds__(Tile::threads)
    attend_back_keys_in_registers(const __grid_constant__ host::attention_call<C, C> x,
                                  const __grid_constant__ host::attention_gradients<C, C> g, double p, std::int64_t tiles) {
  extern __shared__ __align__(16) unsigned char attention_shared[];
  const adjoint_tiles<Tile, true, C> m(attention_shared, x, g);
  const ordered_place at(x.batch, x.key_heads, tiles, Tile::keys, false);
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
      __syncthreads();
    }
    if (!__syncthreads_or(has_none(dk) || has_none(dv) ? 1 : 0)) break;
  }
  await_copies();  // where no query sees any of them
  if (g.dk.data) store_tile<Tile, true>(g.dk, at.b, at.h, at.first, x.keys, dk, m.size, m.ty, m.tx);
  if (g.dv.data) store_tile<Tile, true>(g.dv, at.b, at.h, at.first, x.keys, dv, m.value_size, m.ty, m.tx);
}

template <class Tile, class C>
void attend_back_queries_by_tiles(const host::attention_call<C, C>& x, const host::attention_gradients<C, C>& g,
                                  cudaStream_t stream) {
  constexpr int bytes = adjoint_tiles<Tile, false, C>::bytes;
  const std::int64_t tiles = tiles_of(x.queries, Tile::queries), blocks = tiles * x.heads * x.batch;
  if (!g.dq.data || blocks == 0) return;
  allow_shared(&attend_back_queries_in_registers<Tile, C>, bytes);
  attend_back_queries_in_registers<Tile, C>
      <<<static_cast<unsigned>(blocks), Tile::threads, static_cast<std::size_t>(bytes), stream>>>(x, g, x.a.dropout, tiles);
}
template <class Tile, class C>
void attend_back_keys_by_tiles(const host::attention_call<C, C>& x, const host::attention_gradients<C, C>& g,
                               cudaStream_t stream) {
  constexpr int bytes = adjoint_tiles<Tile, true, C>::bytes;
  const std::int64_t tiles = tiles_of(x.keys, Tile::keys), blocks = tiles * x.key_heads * x.batch;
  if ((!g.dk.data && !g.dv.data) || blocks == 0) return;
  allow_shared(&attend_back_keys_in_registers<Tile, C>, bytes);
  attend_back_keys_in_registers<Tile, C>
      <<<static_cast<unsigned>(blocks), Tile::threads, static_cast<std::size_t>(bytes), stream>>>(x, g, x.a.dropout, tiles);
}
template <class Tile, class C>
void attend_back_by_tiles(const host::attention_call<C, C>& x, const host::attention_gradients<C, C>& g,
                          cudaStream_t stream) {
  attend_back_queries_by_tiles<Tile>(x, g, stream);
  attend_back_keys_by_tiles<Tile>(x, g, stream);
}
template <class C>
void attend_back_by_registers(const host::attention_call<C, C>& x, const host::attention_gradients<C, C>& g,
                              cudaStream_t stream) {
  const bool is_short = x.size <= 64 && x.value_size <= 64;
  if (is_short) attend_back_by_tiles<tiling<C, 64, 32, 32, 8>>(x, g, stream);
  else attend_back_by_tiles<tiling<C, 128, 32, 32, 16>>(x, g, stream);
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// The adjoint of attention by tensor cores, without atomic sums: a kernel over tiles of queries for dq, one over tiles of keys for dk and
// dv, which adds up the queries of all heads of a group in their order; so equal calls give equal bits. Weights and their gradients are
// rounded to the element type before they are multiplied. Price: scores and the products of dout with values are computed in both.
#pragma once

#include <shardwise/operations/attention/device_mma_forward.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

namespace mma {

// Queries are kept for dq, with dout, and keys for dk and dv, with values; beside these lie statistics of a tile's queries.
template <class F, int Size, int Strips, int Warps, int Columns, bool Held, int Blocks>
struct backward_shape : block_shape<F, Size, Strips, Warps, Columns, Held, Blocks> {
  static constexpr int bytes = backward_shape::tile_bytes(2) + 4 * 4 * Columns;
};
template <class F, int Size>
using queries_shape_of = std::conditional_t<
    sizeof(typename F::element) == 4,
    std::conditional_t<Size == 64, backward_shape<F, 64, 1, 4, 64, false, 2>, backward_shape<F, 128, 1, 8, 32, false, 1>>,
    std::conditional_t<Size == 64, backward_shape<F, 64, 1, 4, 64, true, 3>, backward_shape<F, 128, 1, 4, 64, false, 2>>>;
template <class F, int Size>
using keys_shape_of = std::conditional_t<
    sizeof(typename F::element) == 4,
    std::conditional_t<Size == 64, backward_shape<F, 64, 1, 4, 32, F::terms == 1, 2>,
                       backward_shape<F, 128, 1, 8, 32, false, 1>>,
    std::conditional_t<Size == 64, backward_shape<F, 64, 1, 4, 64, false, 3>, backward_shape<F, 128, 1, 4, 64, false, 2>>>;

// Of a strip's scores and of its products of dout and values, less delta unless Marked: the weights that values are multiplied by, and
// the gradients of scores less the scale. less_lse, in units of log 2, and less_delta: of the query of weight n, times -1.
template <bool Marked, bool Turned, class T, int Count, class Lse, class Delta>
__device__ void weigh_back(float (&s)[Count][4], float (&dp)[Count][4], const host::attention_call<T, float>& x,
                           const host::attention_drops& drops, const lane_weights<Turned>& at, std::int64_t b,
                           std::int64_t h, float unit, float kept_factor, std::uint32_t seen, const Lse& less_lse,
                           const Delta& less_delta) {
  std::uint32_t kept = ~0U;
  if constexpr (Marked) {
    if (is_rescored(x)) rescore(s, seen, x, at, b, h);
    if (x.key) kept = kept_bits<Count>(x, drops, at, b, h);
#pragma unroll
    for (int n = 0; n < 4 * Count; ++n)
      dp[n / 4][n % 4] = (kept >> n & 1U ? dp[n / 4][n % 4] * kept_factor : 0.0F) + less_delta(n);
  }
#pragma unroll
  for (int n = 0; n < 4 * Count; ++n) {
    s[n / 4][n % 4] = exp2(fmaf(s[n / 4][n % 4], unit, less_lse(n)));
    dp[n / 4][n % 4] *= s[n / 4][n % 4];
  }
  if ((seen & kept) == ~0U) return;
#pragma unroll
  for (int n = 0; n < 4 * Count; ++n) {
    if ((seen >> n & 1U) == 0) dp[n / 4][n % 4] = 0;
    if ((seen & kept) >> n % 32 & 1U) continue;
    s[n / 4][n % 4] = 0;
  }
}

template <class T, class S, bool Marked>
__device__ void gather_queries(const host::attention_call<T, float>& x, const host::attention_gradients<T, float>& g,
                               const launch& l, unsigned char* shared) {
  using F = typename S::factors;
  const block_place at(x.heads, l.tiles);
  const sight by(x);
  const int first = (l.tiles - 1 - at.tile) * S::rows,
            warp_first = first + static_cast<int>(threadIdx.x) / 32 * S::warp_rows;
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  const head_rows<const T> q(x.q, at.b, at.h), dout(g.dout, at.b, at.h), k(x.k, at.b, at.h / x.group),
      v(x.v, at.b, at.h / x.group);
  T *const q_tile = reinterpret_cast<T*>(shared), *const dout_tile = q_tile + S::rows * S::size,
           *const kv_tiles = dout_tile + S::rows * S::size;
  const int end = by.end_key(::min(first + S::rows, by.queries) - 1),
            first_key = by.first_key(first) / S::columns * S::columns;
  const auto fetch_keys = [&](int key, int stage) {
    T* const to = kv_tiles + stage * 2 * S::columns * S::size;
    fetch<S::columns, S::size, S::threads>(to, k, key, end, size, l.whole);
    fetch<S::columns, S::size, S::threads>(to + S::columns * S::size, v, key, end, value_size, l.whole);
  };
  fetch<S::rows, S::size, S::threads>(q_tile, q, first, by.queries, size, l.whole);
  fetch<S::rows, S::size, S::threads>(dout_tile, dout, first, by.queries, value_size, l.whole);
  if (first_key < end) fetch_keys(first_key, 0);
  const std::int64_t of_head = (at.b * x.heads + at.h) * x.queries;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float less_lse[S::strips][2], less_delta[S::strips][2];
  bool blind = false;  // some query sees nothing
#pragma unroll
  for (int m = 0; m < S::strips; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = warp_first + 16 * m + 8 * r + lane / 4;
      less_lse[m][r] = i < by.queries ? -log2_of_e * g.lse[of_head + i] : 0.0F;
      less_delta[m][r] = i < by.queries ? -g.delta[of_head + i] : 0.0F;
      blind = blind || less_lse[m][r] == -host::math<float>::lowest();
    }
  await_fetched();
  blind = __syncthreads_or(blind);
  const bool marked = blind || (Marked && (x.is_marked() || is_rescored(x)));
  const float unit = Marked && is_rescored(x) ? 1.0F : x.scale * log2_of_e;
  const host::attention_drops drops = Marked ? drops_of(x, x.a.dropout) : host::attention_drops{};
  const float kept = Marked ? kept_factor(x, drops) : 1.0F;
  const left_rows<F, S::held, S::strips, S::size> q_rows(q_tile, warp_first - first),
      dout_rows(dout_tile, warp_first - first);
  strips<S::strips, S::size> dq;
  set(dq, zero{});
  int stage = 0;
  for (int key = first_key; key < end; key += S::columns, stage ^= 1) {
    await_fetched();
    __syncthreads();
    if (key + S::columns < end) fetch_keys(key + S::columns, stage ^ 1);
    const T *const k_tile = kv_tiles + stage * 2 * S::columns * S::size, *const v_tile = k_tile + S::columns * S::size;
    const bool partly = marked || !by.sees_all(first, S::rows, key, S::columns);
    const bool infinite = partly && __syncthreads_or(has_infinite<S::columns, S::size, S::threads>(k_tile));
    if (by.sees_none(warp_first, S::warp_rows, key, S::columns)) continue;
    const bool hidden = marked || !by.sees_all(warp_first, S::warp_rows, key, S::columns);
    strips<S::strips, S::columns> s, ds;
    std::uint32_t seen[S::strips];
    set_products<F, S::size>(s, q_rows, k_tile);
    set_products<F, S::size>(ds, dout_rows, v_tile, [&](int m, int n) { return Marked ? 0.0F : less_delta[m][n / 2 % 2]; });
#pragma unroll
    for (int m = 0; m < S::strips; ++m) {
      const lane_weights<false> w(warp_first + 16 * m, key);
      seen[m] = ~0U;
      if (hidden) seen[m] = seen_bits<S::columns / 8, Marked>(x, by, w, at.b, at.h, blind ? g.lse + of_head : nullptr);
      weigh_back<Marked>(
          s[m], ds[m], x, drops, w, at.b, at.h, unit, kept, seen[m], [&](int n) { return less_lse[m][n / 2 % 2]; },
          [&](int n) { return less_delta[m][n / 2 % 2]; });
    }
    if (infinite) add_weighted_plainly<T, S::size>(dq, ds, seen, k_tile);
    else add_weighted<F, S::size>(dq, ds, k_tile);
  }
  float factor[S::strips][2];
  for (int m = 0; m < S::strips; ++m) factor[m][0] = factor[m][1] = x.scale;
  store_rows<T, S::size>({g.dq, at.b, at.h}, warp_first, by.queries, dq, factor, size, l.whole);
}

// The tiles of `rows` queries that may see some of `columns` keys from j, of each head of a group in turn.
struct query_walk {
  std::int64_t h;
  int first, end, query, rows, left;  // left: how many tiles are to come
  __device__ query_walk(const sight& by, int j, int columns, int tile_rows, std::int64_t first_head, std::int64_t group)
      : h(first_head), rows(tile_rows) {
    const int hidden = by.ends ? j - by.first_query : 0;
    first = query = hidden > 0 ? hidden / rows * rows : 0;
    end = by.window > 0 ? ::min(by.queries, ::max(j + columns + by.window - 1 - by.first_query, 0)) : by.queries;
    left = end > first ? (end - first + rows - 1) / rows * static_cast<int>(group) : 0;
  }
  __device__ void step() {
    --left;
    query += rows;
    if (query < end) return;
    query = first;
    ++h;
  }
};

// Of each query of a tile -lse in units of log 2, and -delta, in two stages of shared memory. A thread brings one of them, which it
// multiplies when it is there.
template <int Columns, int Threads>
struct query_statistics {
  static_assert(Threads >= 2 * Columns);
  float* to;
  const float* from;
  float factor, next = 0;
  bool is_lse, brings;
  template <class T>
  __device__ query_statistics(float* shared, const host::attention_gradients<T, float>& g) : to(shared + threadIdx.x) {
    is_lse = threadIdx.x < Columns;
    brings = threadIdx.x < 2 * Columns;
    from = (is_lse ? g.lse : g.delta) + threadIdx.x % Columns;
    factor = is_lse ? -log2_of_e : -1.0F;
  }
  // Of queries from `query`, those before `end`, of the head whose first row of statistics is `row`.
  __device__ void fetch(std::int64_t row, int query, int end) {
    const bool there = brings && query + static_cast<int>(threadIdx.x % Columns) < end;
    next = there ? from[row + query] : 0.0F;
  }
  __device__ void put(int stage) {
    if (brings) to[stage * 2 * Columns] = next * factor;
  }
  __device__ bool is_blind() const { return is_lse && next == host::math<float>::lowest(); }
};

template <class T, class S, bool Marked>
__device__ void gather_keys(const host::attention_call<T, float>& x, const host::attention_gradients<T, float>& g,
                            const launch& l, unsigned char* shared) {
  using F = typename S::factors;
  const block_place at(x.key_heads, l.tiles);
  const sight by(x);
  const int first = at.tile * S::rows, warp_first = first + static_cast<int>(threadIdx.x) / 32 * S::warp_rows;
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  const head_rows<const T> k(x.k, at.b, at.h), v(x.v, at.b, at.h);
  T *const k_tile = reinterpret_cast<T*>(shared), *const v_tile = k_tile + S::rows * S::size,
           *const query_tiles = v_tile + S::rows * S::size;
  float* const of_queries = reinterpret_cast<float*>(query_tiles + 4 * S::columns * S::size);
  query_statistics<S::columns, S::threads> statistics(of_queries, g);
  const auto fetch_queries = [&](const query_walk& w, int stage) {
    T* const to = query_tiles + stage * 2 * S::columns * S::size;
    fetch<S::columns, S::size, S::threads>(to, head_rows<const T>(x.q, at.b, w.h), w.query, by.queries, size, l.whole);
    fetch<S::columns, S::size, S::threads>(to + S::columns * S::size, head_rows<const T>(g.dout, at.b, w.h), w.query,
                                           by.queries, value_size, l.whole);
    statistics.fetch((at.b * x.heads + w.h) * x.queries, w.query, by.queries);
  };
  fetch<S::rows, S::size, S::threads>(k_tile, k, first, by.keys, size, l.whole);
  fetch<S::rows, S::size, S::threads>(v_tile, v, first, by.keys, value_size, l.whole);
  query_walk ahead(by, first, S::rows, S::columns, at.h * x.group, x.group);
  if (ahead.left > 0) {
    fetch_queries(ahead, 0);
    statistics.put(0);
  }
  const bool marked = Marked && (x.is_marked() || is_rescored(x));
  const float unit = Marked && is_rescored(x) ? 1.0F : x.scale * log2_of_e;
  const host::attention_drops drops = Marked ? drops_of(x, x.a.dropout) : host::attention_drops{};
  const float kept = Marked ? kept_factor(x, drops) : 1.0F;
  strips<S::strips, S::size> dk, dv;
  set(dk, zero{});
  set(dv, zero{});
  await_fetched();
  __syncthreads();
  const left_rows<F, S::held, S::strips, S::size> k_rows(k_tile, warp_first - first), v_rows(v_tile, warp_first - first);
  for (int stage = 0; ahead.left > 0; stage ^= 1) {
    const std::int64_t h = ahead.h;
    const int query = ahead.query;
    const T *const q_tile = query_tiles + stage * 2 * S::columns * S::size, *const dout_tile = q_tile + S::columns * S::size;
    await_fetched();
    const bool blind = __syncthreads_or(statistics.is_blind());
    ahead.step();
    if (ahead.left > 0) fetch_queries(ahead, stage ^ 1);
    const bool partly = marked || blind || !by.sees_all(query, S::columns, first, S::rows);
    const bool infinite = partly && __syncthreads_or(has_infinite<S::columns, S::size, S::threads>(q_tile) ||
                                                     has_infinite<S::columns, S::size, S::threads>(dout_tile));
    if (!by.sees_none(query, S::columns, warp_first, S::warp_rows)) {
      const bool hidden = marked || blind || !by.sees_all(query, S::columns, warp_first, S::warp_rows);
      const float* const of_lane = of_queries + stage * 2 * S::columns + threadIdx.x % 4 * 2;
      const auto less_lse = [&](int n) { return of_lane[n / 4 * 8 + n % 2]; };
      const auto less_delta = [&](int n) { return of_lane[S::columns + n / 4 * 8 + n % 2]; };
      strips<S::strips, S::columns> s, ds;
      std::uint32_t seen[S::strips];
      set_products<F, S::size>(s, k_rows, q_tile);
      set_products<F, S::size>(ds, v_rows, dout_tile, [&](int, int n) { return Marked ? 0.0F : less_delta(n); });
#pragma unroll
      for (int m = 0; m < S::strips; ++m) {
        const lane_weights<true> w(query, warp_first + 16 * m);
        seen[m] = ~0U;
        if (hidden)
          seen[m] = seen_bits<S::columns / 8, Marked>(x, by, w, at.b, h,
                                                      blind ? g.lse + (at.b * x.heads + h) * x.queries : nullptr);
        weigh_back<Marked>(s[m], ds[m], x, drops, w, at.b, h, unit, kept, seen[m], less_lse, less_delta);
      }
      if (infinite) {
        add_weighted_plainly<T, S::size>(dv, s, seen, dout_tile);
        add_weighted_plainly<T, S::size>(dk, ds, seen, q_tile);
      } else {
        add_weighted<F, S::size>(dv, s, dout_tile);
        add_weighted<F, S::size>(dk, ds, q_tile);
      }
    }
    statistics.put(stage ^ 1);
  }
  float of_dk[S::strips][2], of_dv[S::strips][2];
  for (int m = 0; m < S::strips; ++m) {
    of_dk[m][0] = of_dk[m][1] = x.scale;
    of_dv[m][0] = of_dv[m][1] = kept;
  }
  if (g.dk.data) store_rows<T, S::size>({g.dk, at.b, at.h}, warp_first, by.keys, dk, of_dk, size, l.whole);
  if (g.dv.data) store_rows<T, S::size>({g.dv, at.b, at.h}, warp_first, by.keys, dv, of_dv, value_size, l.whole);
}

template <class T, class S, bool Marked>
__global__ void __launch_bounds__(S::threads, blocks_of<S, Marked>)
    attend_back_queries(const __grid_constant__ host::attention_call<T, float> x,
                        const __grid_constant__ host::attention_gradients<T, float> g, const __grid_constant__ launch l) {
  if constexpr (is_compiled) {
    extern __shared__ __align__(128) unsigned char attention_mma_shared[];
    gather_queries<T, S, Marked>(x, g, l, attention_mma_shared);
  }
}
template <class T, class S, bool Marked>
__global__ void __launch_bounds__(S::threads, blocks_of<S, Marked>)
    attend_back_keys(const __grid_constant__ host::attention_call<T, float> x,
                     const __grid_constant__ host::attention_gradients<T, float> g, const __grid_constant__ launch l) {
  if constexpr (is_compiled) {
    extern __shared__ __align__(128) unsigned char attention_mma_shared[];
    gather_keys<T, S, Marked>(x, g, l, attention_mma_shared);
  }
}

template <class T>
bool are_whole(const host::attention_call<T, float>& x, const host::attention_gradients<T, float>& g) {
  return are_whole(x.size, x.value_size, x.q.data, x.k.data, x.v.data, g.dout.data, g.dq.data, g.dk.data, g.dv.data);
}
template <class S, class T>
void attend_back_to_queries(const host::attention_call<T, float>& x, const host::attention_gradients<T, float>& g,
                            cudaStream_t stream) {
  const launch l{are_whole(x, g), static_cast<int>(tiles_of(x.queries, S::rows))};
  const std::int64_t blocks = l.tiles * x.heads * x.batch;
  if (!g.dq.data || blocks == 0) return;
  const auto kernel = is_marked(x) ? &attend_back_queries<T, S, true> : &attend_back_queries<T, S, false>;
  allow_shared(kernel, S::bytes);
  kernel<<<static_cast<unsigned>(blocks), S::threads, S::bytes, stream>>>(x, g, l);
}
template <class S, class T>
void attend_back_to_keys(const host::attention_call<T, float>& x, const host::attention_gradients<T, float>& g,
                         cudaStream_t stream) {
  const launch l{are_whole(x, g), static_cast<int>(tiles_of(x.keys, S::rows))};
  const std::int64_t blocks = l.tiles * x.key_heads * x.batch;
  if ((!g.dk.data && !g.dv.data) || blocks == 0) return;
  const auto kernel = is_marked(x) ? &attend_back_keys<T, S, true> : &attend_back_keys<T, S, false>;
  allow_shared(kernel, S::bytes);
  kernel<<<static_cast<unsigned>(blocks), S::threads, S::bytes, stream>>>(x, g, l);
}

}  // namespace mma

// Whether tensor cores have it. tf32: as attend_by_mma.
template <class T>
bool attend_back_by_mma(const host::attention_call<T, float>& x, const host::attention_gradients<T, float>& g, bool tf32,
                        cudaStream_t stream) {
  return mma::by_factors<T>(tf32, [&](auto factors) {
    using F = decltype(factors);
    if (!mma::is_taken<F>(x)) return false;
    mma::by_padded_size(x.size > x.value_size ? x.size : x.value_size, [&](auto size) {
      mma::attend_back_to_queries<mma::queries_shape_of<F, decltype(size)::value>>(x, g, stream);
      mma::attend_back_to_keys<mma::keys_shape_of<F, decltype(size)::value>>(x, g, stream);
    });
    return true;
  });
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// The adjoint of attention on devices, without atomic sums: a kernel over tiles of queries for dq, one over tiles of keys for dk and
// dv, which adds up the queries of all heads of a group in their order; so equal calls give equal bits. Price: scores and the products
// of dout with values are computed in both.
#pragma once

#include <shardwise/operations/attention/device_registers_backward.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// Pointers into shared memory: tiles of q, k, of dout and v, and of weights.
template <class C, int Size>
struct backward_tiles {
  static constexpr int rows = tile_rows<C, Size>;
  C *q, *k, *dout, *v, *ds, *p;
  __device__ backward_tiles(unsigned char* shared, int size, int value_size) {
    q = reinterpret_cast<C*>(shared);
    k = q + rows * (size + 1);
    dout = k + rows * (size + 1);
    v = dout + rows * (value_size + 1);
    ds = v + rows * (value_size + 1);
    p = ds + rows * (rows + 1);
  }
};

// Of staged tiles of queries first_query.. and keys first_key..: ds, the gradient of the products of q and k, and p, the weights that values are
// multiplied by.
template <bool Weights, int Size, class T, class C>
__device__ void weigh_back(const host::attention_call<T, C>& x, const host::attention_gradients<T, C>& g,
                           host::attention_drops& drops, const backward_tiles<C, Size>& m, std::int64_t b, std::int64_t h,
                           std::int64_t first_query, std::int64_t first_key, int ty, int tx) {
  constexpr int rows = tile_rows<C, Size>, each = rows / side;
  C s[each][each], dp[each][each];
  products(s, m.q, m.k, static_cast<int>(x.size), ty, tx);
  products(dp, m.dout, m.v, static_cast<int>(x.value_size), ty, tx);
  for (int r = 0; r < each; ++r) {
    const std::int64_t i = first_query + ty + side * r, row = (b * x.heads + h) * x.queries + i;
    const bool is_query = i < x.queries;
    const C lse = is_query ? static_cast<C>(g.lse[row]) : host::math<C>::lowest();
    const C delta = is_query ? static_cast<C>(g.delta[row]) : C(0);
    for (int c = 0; c < each; ++c) {
      const std::int64_t j = first_key + tx + side * c;
      const int at = (ty + side * r) * (rows + 1) + tx + side * c;
      const bool seen = lse != host::math<C>::lowest() && is_seen(x, b, h, i, j);
      const C weight = seen ? math<C>::exp(biased(x, b, h, i, j, s[r][c]) - lse) : C(0);
      const C keep = seen ? kept(x, drops, b, h, i, j) : C(0);
      m.ds[at] = seen ? weight * (dp[r][c] * keep - delta) * x.scale : C(0);
      if (Weights) m.p[at] = seen ? weight * keep : C(0);
    }
  }
}

template <int Size, class T, class C>
__global__ void __launch_bounds__(threads)
    attend_back_queries(const __grid_constant__ host::attention_call<T, C> x,
                        const __grid_constant__ host::attention_gradients<T, C> g, double p, std::int64_t tiles) {
  constexpr int rows = tile_rows<C, Size>, each = rows / side, columns = Size / side;
  extern __shared__ __align__(16) unsigned char attention_shared[];
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  const backward_tiles<C, Size> m(attention_shared, size, value_size);
  const place at(x.heads, tiles, rows);
  const int tx = static_cast<int>(threadIdx.x) % side, ty = static_cast<int>(threadIdx.x) / side;
  const std::int64_t kh = at.h / x.group, last = at.first + rows < x.queries ? at.first + rows - 1 : x.queries - 1;
  host::attention_drops drops = drops_of(x, p);
  C dq[each][columns];
  for (int r = 0; r < each; ++r)
    for (int c = 0; c < columns; ++c) dq[r][c] = C(0);
  stage<rows>(m.q, x.q, at.b, at.h, at.first, x.queries, size);
  stage<rows>(m.dout, g.dout, at.b, at.h, at.first, x.queries, value_size);
  const std::int64_t end = x.end_key(last);
  for (std::int64_t first_key = x.first_key(at.first); first_key < end; first_key += rows) {
    stage<rows>(m.k, x.k, at.b, kh, first_key, end, size);
    stage<rows>(m.v, x.v, at.b, kh, first_key, end, value_size);
    __syncthreads();
    weigh_back<false>(x, g, drops, m, at.b, at.h, at.first, first_key, ty, tx);
    __syncthreads();
    add_weighted<false>(dq, m.ds, m.k, rows, size, ty, tx);
    __syncthreads();
  }
  store(g.dq, at.b, at.h, at.first, x.queries, dq, size, ty, tx);
}

template <int Size, class T, class C>
__global__ void __launch_bounds__(threads)
    attend_back_keys(const __grid_constant__ host::attention_call<T, C> x,
                     const __grid_constant__ host::attention_gradients<T, C> g, double p, std::int64_t tiles) {
  constexpr int rows = tile_rows<C, Size>, each = rows / side, columns = Size / side;
  extern __shared__ __align__(16) unsigned char attention_shared[];
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  const backward_tiles<C, Size> m(attention_shared, size, value_size);
  const place at(x.key_heads, tiles, rows);
  const int tx = static_cast<int>(threadIdx.x) % side, ty = static_cast<int>(threadIdx.x) / side;
  host::attention_drops drops = drops_of(x, p);
  C dk[each][columns], dv[each][columns];
  for (int r = 0; r < each; ++r)
    for (int c = 0; c < columns; ++c) dk[r][c] = dv[r][c] = C(0);
  stage<rows>(m.k, x.k, at.b, at.h, at.first, x.keys, size);
  stage<rows>(m.v, x.v, at.b, at.h, at.first, x.keys, value_size);
  for (std::int64_t h = at.h * x.group; h < (at.h + 1) * x.group; ++h)
    for (std::int64_t first_query = 0; first_query < x.queries; first_query += rows) {
      const std::int64_t last = first_query + rows < x.queries ? first_query + rows - 1 : x.queries - 1;
      if (x.end_key(last) <= at.first || x.first_key(first_query) >= at.first + rows)
        continue;  // none of them sees any of these
      __syncthreads();
      stage<rows>(m.q, x.q, at.b, h, first_query, x.queries, size);
      stage<rows>(m.dout, g.dout, at.b, h, first_query, x.queries, value_size);
      __syncthreads();
      weigh_back<true>(x, g, drops, m, at.b, h, first_query, at.first, ty, tx);
      __syncthreads();
      add_weighted<true>(dv, m.p, m.dout, rows, value_size, ty, tx);
      add_weighted<true>(dk, m.ds, m.q, rows, size, ty, tx);
    }
  if (g.dk.data) store(g.dk, at.b, at.h, at.first, x.keys, dk, size, ty, tx);
  if (g.dv.data) store(g.dv, at.b, at.h, at.first, x.keys, dv, value_size, ty, tx);
}

template <class T, class C>
void attend_back(const host::attention_call<T, C>& x, const host::attention_gradients<T, C>& g, cudaStream_t stream) {
  const std::int64_t larger = x.size > x.value_size ? x.size : x.value_size;
  if constexpr (std::is_same_v<T, double>)
    if (fits_registers(x)) return attend_back_by_registers(x, g, stream);
  by_size<least_size<T>>(larger, [&](auto size) {
    constexpr int most = decltype(size)::value, rows = tile_rows<C, most>;
    const int bytes = shared_bytes<C, most>(4, 2, larger);
    const std::int64_t of_queries = tiles_of(x.queries, rows), of_keys = tiles_of(x.keys, rows);
    if (const std::int64_t blocks = of_queries * x.heads * x.batch; g.dq.data && blocks > 0) {
      allow_shared(&attend_back_queries<most, T, C>, bytes);
      attend_back_queries<most, T, C><<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(bytes), stream>>>(
          x, g, x.a.dropout, of_queries);
    }
    if (const std::int64_t blocks = of_keys * x.key_heads * x.batch; (g.dk.data || g.dv.data) && blocks > 0) {
      allow_shared(&attend_back_keys<most, T, C>, bytes);
      attend_back_keys<most, T, C>
          <<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(bytes), stream>>>(x, g, x.a.dropout, of_keys);
    }
  });
}

// out (batch, heads, times) = sum of x y over the size; a warp for each.
template <class C, class T>
__global__ void __launch_bounds__(threads)
    row_products(const __grid_constant__ host::attention_block<const T> x,
                 const __grid_constant__ host::attention_block<const T> y, C* out, std::int64_t rows, std::int64_t heads,
                 std::int64_t times, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / 32);
  for (std::int64_t n = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32; n < rows; n += step) {
    const std::int64_t t = n % times, h = n / times % heads, b = n / times / heads;
    const T *const p = x.at(b, h, t), *const q = y.at(b, h, t);
    C sum = C(0);
    for (std::int64_t i = threadIdx.x % 32; i < size; i += 32) sum += static_cast<C>(p[i]) * static_cast<C>(q[i]);
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lane);
    if (threadIdx.x % 32 == 0) out[n] = sum;
  }
}
// The same of rows that are chunks of 16 bytes: eight lanes for each.
template <class C, class T>
__global__ void __launch_bounds__(threads)
    row_products_by_chunks(const __grid_constant__ host::attention_block<const T> x,
                           const __grid_constant__ host::attention_block<const T> y, C* out, unsigned rows, unsigned heads,
                           unsigned times, int chunks) {
  struct alignas(16) chunk {
    T v[16 / sizeof(T)];
  };
  const unsigned n = blockIdx.x * (threads / 8) + threadIdx.x / 8;
  const int lane = static_cast<int>(threadIdx.x) % 8;
  C sum = C(0);
  if (n < rows) {
    const unsigned t = n % times, h = n / times % heads, b = n / times / heads;
    const chunk *const p = reinterpret_cast<const chunk*>(x.at(b, h, t)), *const q =
                                                                              reinterpret_cast<const chunk*>(y.at(b, h, t));
    for (int i = lane; i < chunks; i += 8) {
      const chunk u = p[i], v = q[i];
      for (int e = 0; e < static_cast<int>(16 / sizeof(T)); ++e) sum += static_cast<C>(u.v[e]) * static_cast<C>(v.v[e]);
    }
  }
  for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
  if (n < rows && lane == 0) out[n] = sum;
}
template <class C, class T>
void multiply_rows(const host::attention_block<const T>& x, const host::attention_block<const T>& y, C* out,
                   std::int64_t batch, std::int64_t heads, std::int64_t times, std::int64_t size, cudaStream_t stream) {
  const std::int64_t rows = batch * heads * times, blocks = tiles_of(rows, threads / 32);
  if constexpr (sizeof(T) == 2) {
    const auto is_whole = [](const T* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
    if (rows > 0 && rows < std::int64_t{1} << 31 && size % 8 == 0 && is_whole(x.data) && is_whole(y.data)) {
      row_products_by_chunks<C, T><<<static_cast<unsigned>(tiles_of(rows, threads / 8)), threads, 0, stream>>>(
          x, y, out, static_cast<unsigned>(rows), static_cast<unsigned>(heads), static_cast<unsigned>(times),
          static_cast<int>(size / 8));
      return;
    }
  }
  if (rows > 0)
    row_products<C, T><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), threads, 0, stream>>>(x, y, out, rows,
                                                                                                       heads, times, size);
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

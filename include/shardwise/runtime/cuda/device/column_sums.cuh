// SPDX-License-Identifier: Apache-2.0
// Sums over rows that lie at equal distances, by packs of columns: what is summed is read once, 16 bytes a thread.
#pragma once

#include <cstdint>

#include <shardwise/operations/reduction/scratch.hpp>
#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/runtime/cuda/device/row_packs.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

inline constexpr int column_warps = 8;  // rows at a time of a block

struct column_chunks {
  std::int64_t rows, columns, length;  // length: rows of a chunk
  double* part;                        // [chunk][sum][column], more than one chunk
  std::uint32_t* ticket;
};

// A block for 32 packs of columns and each chunk of rows; its warps take turns at the rows, and the block of a tile that ends last
// adds the chunks in their order. row.add(row, first column, sums) adds a row's pack to each of the sums, store(sum, column, total)
// writes.
template <class T, int Sums, class Row, class Store>
__global__ void __launch_bounds__(column_warps* warp_threads)
    column_sums_kernel(const __grid_constant__ column_chunks a, const Row row, const Store store) {
  using S = added_in<T>;
  constexpr int V = vector_of<T>;
  static_assert(V <= column_warps, "a warp joins one column of each pack");
  __shared__ double joined[Sums][V][column_warps][warp_threads];
  const int lane = static_cast<int>(threadIdx.x % warp_threads), warp = static_cast<int>(threadIdx.x / warp_threads);
  const std::int64_t column = (std::int64_t{blockIdx.x} * warp_threads + lane) * V;
  const bool own = column < a.columns;
  const std::int64_t begin = blockIdx.y * a.length, end = begin + a.length < a.rows ? begin + a.length : a.rows;
  S sums[Sums][V];
#pragma unroll
  for (int s = 0; s < Sums; ++s)
#pragma unroll
    for (int k = 0; k < V; ++k) sums[s][k] = S(0);
  if (own)
#pragma unroll 4
    for (std::int64_t r = begin + warp; r < end; r += column_warps) row.add(r, column, sums);

  // What all warps have of column `warp` of each pack.
  const bool joins = warp < V && own;
  double total[Sums];
  const auto join = [&](const double(&mine)[Sums][V]) {
#pragma unroll
    for (int s = 0; s < Sums; ++s)
#pragma unroll
      for (int k = 0; k < V; ++k) joined[s][k][warp][lane] = mine[s][k];
    __syncthreads();
#pragma unroll
    for (int s = 0; s < Sums; ++s) {
      total[s] = 0;
      if (joins)
        for (int j = 0; j < column_warps; ++j) total[s] += joined[s][warp][j][lane];
    }
  };
  double mine[Sums][V];
#pragma unroll
  for (int s = 0; s < Sums; ++s)
#pragma unroll
    for (int k = 0; k < V; ++k) mine[s][k] = static_cast<double>(sums[s][k]);
  join(mine);
  if (gridDim.y > 1) {
    if (joins)
#pragma unroll
      for (int s = 0; s < Sums; ++s) a.part[(std::int64_t{blockIdx.y} * Sums + s) * a.columns + column + warp] = total[s];
    if (!last_to_arrive(a.ticket + blockIdx.x, gridDim.y)) return;
    double of_chunks[Sums][V]{};
    for (std::int64_t c = warp; own && c < gridDim.y; c += column_warps)
#pragma unroll
      for (int s = 0; s < Sums; ++s)
#pragma unroll
        for (int k = 0; k < V; ++k) of_chunks[s][k] += arrived(a.part + (c * Sums + s) * a.columns + column + k);
    join(of_chunks);
  }
  if (!joins) return;
#pragma unroll
  for (int s = 0; s < Sums; ++s) store(s, column + warp, total[s]);
}

// The parts of each sum take no more room than those of a reduction of all columns (device_scratch::reduction_bytes). False, and
// nothing is launched, without rows or whole packs.
template <class T, int Sums, class Row, class Store>
bool run_column_sums(op_code op, std::int64_t rows, std::int64_t columns, const Row& row, const Store& store, void* scratch,
                     context& ctx) {
  constexpr int V = vector_of<T>;
  if (rows == 0 || columns == 0 || columns % V != 0) return false;
  const std::int64_t tiles = (columns / V + warp_threads - 1) / warp_threads;
  if (tiles > ticket_count) return false;
  const std::int64_t room = device_scratch::reduction_blocks * device_scratch::column_tile / columns, idle = 512 / tiles,
                     worth = (rows + device_scratch::column_chunk - 1) / device_scratch::column_chunk;
  std::int64_t chunks = room < idle ? room : idle;
  if (chunks > worth) chunks = worth;
  if (chunks < 1) chunks = 1;
  const column_chunks a{rows, columns, (rows + chunks - 1) / chunks, static_cast<double*>(scratch), ctx.tickets};
  launch(op, &column_sums_kernel<T, Sums, Row, Store>, dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(chunks)),
         column_warps * warp_threads, ctx.stream, a, row, store);
  return true;
}

// One tensor's, over all dims but its last.
template <class T>
struct plain_columns {
  const T* x;
  std::int64_t step;
  template <class S, int V>
  __device__ void add(std::int64_t r, std::int64_t column, S (&sums)[1][V]) const {
    const pack<T, V> p = *reinterpret_cast<const pack<T, V>*>(x + r * step + column);
#pragma unroll
    for (int k = 0; k < V; ++k) sums[0][k] += static_cast<S>(p.v[k]);
  }
};
template <class T>
struct store_column {
  T* out;
  std::int64_t step;
  double divisor;
  __device__ void operator()(int, std::int64_t column, double total) const {
    out[column * step] = static_cast<T>(total / divisor);
  }
};
template <class T>
bool sum_columns(op_code op, const layout& x, const void* p, T* out, std::int64_t step, double divisor, void* scratch,
                 context& ctx) {
  const layout* const one[1] = {&x};
  const int last = x.rank - 1;
  if (last < 1 || x.ext[last] < 16) return false;
  const walk<1> rows = row_walk(one, last);
  if (rows.rank != 1 || !begins_packs<T>(rows, 0, p, x.str[last])) return false;
  return run_column_sums<T, 1>(op, rows.ext[0], x.ext[last], plain_columns<T>{static_cast<const T*>(p), rows.str[0][0]},
                               store_column<T>{out, step, divisor}, scratch, ctx);
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

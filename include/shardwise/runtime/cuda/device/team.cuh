// SPDX-License-Identifier: Apache-2.0
// team: the threads that share a row, a warp or a block, with sums and maxima that all of them receive (CUB).
#pragma once

#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

inline constexpr int warp_threads = 32, block_threads = 512;
inline constexpr int rows_in_block = 4;          // of warps, each with its own row
inline constexpr std::int64_t short_row = 1024;  // up to here a warp takes a row

struct larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

// Two sums over the same elements, reduced as one.
struct two_sums {
  double a, b;
  __device__ friend two_sums operator+(two_sums x, two_sums y) { return {x.a + y.a, x.b + y.b}; }
};

// What lane 0 of a warp has, for all of its lanes.
template <class T>
__device__ T of_first_lane(T v) {
  return __shfl_sync(0xFFFFFFFFU, v, 0);
}
__device__ inline two_sums of_first_lane(two_sums v) { return {of_first_lane(v.a), of_first_lane(v.b)}; }

// Every thread of the team must call these together. The order of additions depends on Threads alone.
template <int Threads>
struct team {
  static constexpr int threads = Threads;
  static constexpr int rows = Threads == warp_threads ? rows_in_block : 1;  // teams in a block

  __device__ std::uint32_t first_row() const { return blockIdx.x * rows + threadIdx.x / Threads; }
  __device__ std::uint32_t row_step() const { return gridDim.x * rows; }
  __device__ int lane() const { return static_cast<int>(threadIdx.x % Threads); }

  template <class T>
  __device__ T sum(T v) const {
    return reduce(v, plus{});
  }
  template <class T>
  __device__ T max(T v) const {
    return reduce(v, larger{});
  }

  template <class T, class Op>
  __device__ T reduce(T v, Op op) const {
    if constexpr (Threads == warp_threads) {
      using warp = cub::WarpReduce<T>;
      __shared__ typename warp::TempStorage scratch[rows_in_block];
      v = warp(scratch[threadIdx.x / warp_threads]).Reduce(v, op);
      return of_first_lane(v);
    } else {
      using block = cub::BlockReduce<T, Threads>;
      __shared__ typename block::TempStorage scratch;
      __shared__ T all;
      v = block(scratch).Reduce(v, op);
      if (threadIdx.x == 0) all = v;
      __syncthreads();
      v = all;
      __syncthreads();  // before the next reduction writes to `all`
      return v;
    }
  }
};

namespace detail {

template <class Row, int K, int Threads>
__global__ void __launch_bounds__(Threads == warp_threads ? warp_threads * rows_in_block : Threads)
    row_kernel(const __grid_constant__ strided<K> w, const Row row) {
  const team<Threads> t;
  for (std::uint32_t r = t.first_row(); r < w.count; r += t.row_step()) {
    std::int64_t at[K];
    w.offsets(r, at);
    row(t, at);
  }
}

}  // namespace detail

// row(team, offsets) for every point of the walk; `n` is the rows' length.
template <int K, class Row>
void each_row(op_code op, const walk<K>& rows, std::int64_t n, const Row& row, context& ctx) {
  each_piece(rows, [&](const walk<K>& w, const std::int64_t* base) {
    const strided<K> s = make_strided(w, base);
    if (n <= short_row)
      launch(op, &detail::row_kernel<Row, K, warp_threads>,
             grid_for((std::int64_t{s.count} + rows_in_block - 1) / rows_in_block, ctx), warp_threads * rows_in_block,
             ctx.stream, s, row);
    else launch(op, &detail::row_kernel<Row, K, block_threads>, grid_for(s.count, ctx), block_threads, ctx.stream, s, row);
  });
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

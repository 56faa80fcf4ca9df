// SPDX-License-Identifier: Apache-2.0
// Norms of rows that a warp keeps in registers, and the sums over rows by packs of columns: each operand is read once, 16 bytes at a
// time. What lies otherwise is for the kernels of device.cuh.
#pragma once

#include <shardwise/operations/norm/record.hpp>
#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/device/row_packs.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// at: x, result, statistics; stats and b may be null.
template <class T, int Packs>
struct norm_packs {
  using C = computed_in<T>;
  using S = sum_of<T>;
  std::int64_t n;
  double eps;
  bool rms;
  const T *x, *w, *b;
  C* stats;
  T* o;

  __device__ void operator()(const team<warp_threads>& t, const std::int64_t* at) const {
    using packs = row_packs<T, Packs>;
    constexpr int V = packs::V;
    packs r;
    r.load(x + at[0], n, t.lane());
    S total = 0, square = 0;
    if (!rms) {
      packs::each(n, t.lane(), [&](int p, int) {
#pragma unroll
        for (int k = 0; k < V; ++k) total += static_cast<S>(r.v[p][k]);
      });
      total = t.sum(total) / static_cast<S>(n);
    }
    packs::each(n, t.lane(), [&](int p, int) {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const S d = static_cast<S>(r.v[p][k]) - total;
        square += d * d;
      }
    });
    square = t.sum(square);
    const C mean = static_cast<C>(total),
            rstd = static_cast<C>(1 / math<double>::sqrt(static_cast<double>(square) / static_cast<double>(n) + eps));
    if (stats && t.lane() == 0) {
      stats[at[2]] = mean;
      stats[at[2] + 1] = rstd;
    }
    packs::each(n, t.lane(), [&](int p, int i) {
      const pack<T, V> weight = *reinterpret_cast<const pack<T, V>*>(w + i);
      pack<T, V> bias{}, out;
      if (b) bias = *reinterpret_cast<const pack<T, V>*>(b + i);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const C h = (r.v[p][k] - mean) * rstd * static_cast<C>(weight.v[k]);
        out.v[k] = static_cast<T>(b ? h + static_cast<C>(bias.v[k]) : h);
      }
      *reinterpret_cast<pack<T, V>*>(o + at[1] + i) = out;
    });
  }
};

// at: dy, x, statistics, result, the expression's operands. The law stands at norm_dx_row.
template <class T, int Packs, class Then>
struct norm_dx_packs {
  using C = computed_in<T>;
  const T *dy, *x, *w;
  const C* stats;
  T* o;
  std::int64_t n, ss;
  bool rms;
  Then then;
  std::int64_t step[Then::operands + 1];  // of the expression's operands along the row

  __device__ void operator()(const team<warp_threads>& t, const std::int64_t* at) const {
    using packs = row_packs<T, Packs>;
    constexpr int V = packs::V;
    packs g, h;
    g.load(dy + at[0], n, t.lane());
    h.load(x + at[1], n, t.lane());
    const C mean = stats[at[2]], rstd = stats[at[2] + ss];
    C g1 = C(0), gh = C(0);
    packs::each(n, t.lane(), [&](int p, int i) {
      const pack<T, V> weight = *reinterpret_cast<const pack<T, V>*>(w + i);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        g.v[p][k] *= static_cast<C>(weight.v[k]);
        h.v[p][k] = (h.v[p][k] - mean) * rstd;
        g1 += g.v[p][k];
        gh += g.v[p][k] * h.v[p][k];
      }
    });
    g1 = rms ? C(0) : t.sum(g1) / static_cast<C>(n);
    gh = t.sum(gh) / static_cast<C>(n);
    packs::each(n, t.lane(), [&](int p, int i) {
      pack<T, V> out;
#pragma unroll
      for (int k = 0; k < V; ++k) {
        std::int64_t off[Then::operands + 1];
#pragma unroll
        for (int j = 0; j < Then::operands; ++j) off[j] = at[4 + j] + (i + k) * step[j];
        out.v[k] = then(static_cast<T>(rstd * (g.v[p][k] - g1 - h.v[p][k] * gh)), off);
      }
      *reinterpret_cast<pack<T, V>*>(o + at[3] + i) = out;
    });
  }
};

// --- the weight's and the bias's gradients -----------------------------------------------------------------------------------

inline constexpr int column_warps = 8;  // rows at a time of a block
inline constexpr std::int64_t column_parts = device_scratch::reduction_blocks * device_scratch::column_tile;

template <class T>
struct norm_columns {
  using C = computed_in<T>;
  const T *dy, *x;
  const C* stats;
  T *dw, *db;  // db: null without it
  std::int64_t rows, n, dy_row, x_row, stats_row, ss;
  std::int64_t length;  // rows of a chunk
  double* part;         // [chunk][dw, db if it is asked for][column], more than one chunk
  std::uint32_t* ticket;
};

// A block for 32 packs of columns and each chunk of rows; its warps take turns at the rows, and the block of a tile that ends last
// adds the chunks in their order.
template <class T>
__global__ void __launch_bounds__(column_warps* warp_threads)
    norm_columns_kernel(const __grid_constant__ norm_columns<T> a) {
  using C = computed_in<T>;
  using S = sum_of<T>;
  constexpr int V = vector_of<T>;
  __shared__ double joined[2][column_warps][warp_threads];
  const int lane = static_cast<int>(threadIdx.x % warp_threads), warp = static_cast<int>(threadIdx.x / warp_threads);
  const std::int64_t column = (std::int64_t{blockIdx.x} * warp_threads + lane) * V;
  const bool own = column < a.n;
  const std::int64_t begin = blockIdx.y * a.length, end = begin + a.length < a.rows ? begin + a.length : a.rows;
  const int sums = a.db ? 2 : 1;
  S w[V], b[V];
#pragma unroll
  for (int k = 0; k < V; ++k) w[k] = b[k] = S(0);
  if (own) {
#pragma unroll 4
    for (std::int64_t r = begin + warp; r < end; r += column_warps) {
      const pack<T, V> g = *reinterpret_cast<const pack<T, V>*>(a.dy + r * a.dy_row + column),
                       x = *reinterpret_cast<const pack<T, V>*>(a.x + r * a.x_row + column);
      const C mean = a.stats[r * a.stats_row], rstd = a.stats[r * a.stats_row + a.ss];
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const C d = static_cast<C>(g.v[k]);
        w[k] += static_cast<S>(d * ((static_cast<C>(x.v[k]) - mean) * rstd));
        b[k] += static_cast<S>(d);
      }
    }
  }
  // the warps' sums of column k of each pack, by warp 0
  double total[2][V];
#pragma unroll
  for (int k = 0; k < V; ++k) {
    joined[0][warp][lane] = static_cast<double>(w[k]);
    joined[1][warp][lane] = static_cast<double>(b[k]);
    __syncthreads();
    for (int s = 0; s < 2; ++s) {
      total[s][k] = 0;
      if (warp == 0)
        for (int j = 0; j < column_warps; ++j) total[s][k] += joined[s][j][lane];
    }
    __syncthreads();
  }
  if (gridDim.y > 1) {
    if (warp == 0 && own)
      for (int s = 0; s < sums; ++s)
#pragma unroll
        for (int k = 0; k < V; ++k) a.part[(std::int64_t{blockIdx.y} * sums + s) * a.n + column + k] = total[s][k];
    if (!last_to_arrive(a.ticket + blockIdx.x, gridDim.y)) return;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      double sum[2] = {0, 0};
      for (std::int64_t c = warp; own && c < gridDim.y; c += column_warps)
        for (int s = 0; s < sums; ++s) sum[s] += arrived(a.part + (c * sums + s) * a.n + column + k);
      joined[0][warp][lane] = sum[0];
      joined[1][warp][lane] = sum[1];
      __syncthreads();
      for (int s = 0; s < 2; ++s) {
        total[s][k] = 0;
        if (warp == 0)
          for (int j = 0; j < column_warps; ++j) total[s][k] += joined[s][j][lane];
      }
      __syncthreads();
    }
  }
  if (warp != 0 || !own) return;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    a.dw[column + k] = static_cast<T>(total[0][k]);
    if (a.db) a.db[column + k] = static_cast<T>(total[1][k]);
  }
}

// False, and nothing is launched, where rows do not lie so. Parts take no more room than those of a reduction of all columns
// (device_scratch::reduction_bytes).
template <class T>
bool run_norm_columns(op_code op, const call& c, T* dw, T* db, context& ctx) {
  constexpr int V = vector_of<T>;
  const layout &dy = c.l[0], &x = c.l[1], &stats = c.l[2];
  const int last = dy.rank - 1;
  walk<3> rows;
  for (int d = 0; d < last; ++d) {
    const std::int64_t s[3] = {dy.str[d], x.str[d], stats.str[d]};
    rows.push(dy.ext[d], s);
  }
  rows.merge();
  norm_columns<T> a{};
  a.dy = as<T>(c.p[0]);
  a.x = as<T>(c.p[1]);
  a.stats = as<computed_in<T>>(c.p[2]);
  a.dw = dw;
  a.db = db;
  a.rows = points(rows);
  a.n = dy.ext[last];
  if (a.rows == 0 || a.n % V != 0 || a.n == 0 || rows.rank != 1 || !begins_packs<T>(rows, 0, a.dy, dy.str[last]) ||
      !begins_packs<T>(rows, 1, a.x, x.str[last]))
    return false;
  a.dy_row = rows.str[0][0];
  a.x_row = rows.str[1][0];
  a.stats_row = rows.str[2][0];
  a.ss = stats.str[last];
  const std::int64_t tiles = (a.n / V + warp_threads - 1) / warp_threads, room = column_parts / a.n, idle = 512 / tiles,
                     worth = (a.rows + device_scratch::column_chunk - 1) / device_scratch::column_chunk;
  std::int64_t chunks = room < idle ? room : idle;
  if (chunks > worth) chunks = worth;
  if (chunks < 1) chunks = 1;
  if (tiles > ticket_count) return false;
  a.length = (a.rows + chunks - 1) / chunks;
  a.part = as<double>(c.workspace);
  a.ticket = ctx.tickets;
  launch(op, &norm_columns_kernel<T>, dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(chunks)),
         column_warps * warp_threads, ctx.stream, a);
  return true;
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// What goes back through a norm, of rows that a team, a warp or a block, keeps in registers: each operand is read once. A team adds up
// in registers what its rows give to the gradients of weight and bias, a block what its warps have, and a second launch what the blocks
// have, all in their order.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/operations/norm/record.hpp>
#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/device/row_packs.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Threads of a block: eight warps with a row each, or one row. A thread's packs of a warp's short and long rows, and of a block's:
// beside two operands and two sums for each element no more fit its registers. Of short rows two blocks share a multiprocessor: one's
// rows fill the time in which the other's wait for memory and for their sums.
inline constexpr int joined_threads = 256, joined_warps = joined_threads / warp_threads, narrow_row_packs = 3,
                     block_row_packs = 4;
template <class T>
inline constexpr int wide_row_packs = sizeof(T) == 2 ? 4 : 8;
inline constexpr std::int64_t joined_blocks =
    4 * operations::norm_dx_dw_blocks;  // two sums a column each: what the scratch holds

template <class T, class Then>
struct joined_rows {
  std::int64_t count, n, sg, sx, so;  // rows, their elements, distances of rows
  const T *dy, *x, *w;
  T* o;
  double* part;  // [block][weight, bias][column]
  double eps;
  bool rms;
  Then then;
  std::int64_t row[Then::operands + 1],
      step[Then::operands + 1];  // of the expression's operands, from row to row and along one
};

// Every thread of the team has the sum, the same bits: both partners of a step add the same two numbers, and all threads of a block
// add its warps' in the same order.
template <int Threads, class S>
__device__ S sum_of_team(S v) {
#pragma unroll
  for (int d = warp_threads / 2; d > 0; d /= 2) v += __shfl_xor_sync(0xFFFFFFFFU, v, d);
  if constexpr (Threads > warp_threads) {
    __shared__ S of_warp[Threads / warp_threads];
    if (threadIdx.x % warp_threads == 0) of_warp[threadIdx.x / warp_threads] = v;
    __syncthreads();
    v = of_warp[0];
#pragma unroll
    for (int j = 1; j < Threads / warp_threads; ++j) v += of_warp[j];
    __syncthreads();  // before the next sum is written there
  }
  return v;
}

template <class T, int Packs, int Threads, class Then>
__global__ void __launch_bounds__(joined_threads, Packs == narrow_row_packs ? 2 : 1)
    joined_rows_kernel(const __grid_constant__ joined_rows<T, Then> a) {
  using C = computed_in<T>;
  using S = added_in<T>;
  using packs = row_packs<T, Packs, Threads>;
  constexpr int V = packs::V, teams = joined_threads / Threads;
  const int lane = static_cast<int>(threadIdx.x % Threads), own = static_cast<int>(threadIdx.x / Threads);
  const C n = static_cast<C>(a.n);
  S sums[2][Packs][V];
#pragma unroll
  for (int p = 0; p < Packs; ++p)
#pragma unroll
    for (int k = 0; k < V; ++k) sums[0][p][k] = sums[1][p][k] = S(0);
  for (std::int64_t r = std::int64_t{blockIdx.x} * teams + own; r < a.count; r += std::int64_t{gridDim.x} * teams) {
    packs g, h;
    g.load(a.dy + r * a.sg, a.n, lane);
    h.load(a.x + r * a.sx, a.n, lane);
    S total = S(0), square = S(0);
    if (!a.rms) {
      packs::each(a.n, lane, [&](int p, int) {
#pragma unroll
        for (int k = 0; k < V; ++k) total += static_cast<S>(h.v[p][k]);
      });
      total = sum_of_team<Threads>(total) / static_cast<S>(n);
    }
    const C mean = static_cast<C>(total);
    packs::each(a.n, lane, [&](int p, int) {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        if constexpr (std::is_same_v<S, C>) {
          h.v[p][k] -= mean;
          square += h.v[p][k] * h.v[p][k];
        } else {
          const S d = static_cast<S>(h.v[p][k]) - total;
          square += d * d;
          h.v[p][k] -= mean;
        }
      }
    });
    const C rstd = static_cast<C>(
        1 / math<double>::sqrt(static_cast<double>(sum_of_team<Threads>(square)) / static_cast<double>(a.n) + a.eps));
    C g1 = C(0), gh = C(0);
    packs::each(a.n, lane, [&](int p, int i) {
      const pack<T, V> weight = *reinterpret_cast<const pack<T, V>*>(a.w + i);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        h.v[p][k] *= rstd;
        sums[0][p][k] += static_cast<S>(g.v[p][k] * h.v[p][k]);
        sums[1][p][k] += static_cast<S>(g.v[p][k]);
        g.v[p][k] *= static_cast<C>(weight.v[k]);
        g1 += g.v[p][k];
        gh += g.v[p][k] * h.v[p][k];
      }
    });
    g1 = a.rms ? C(0) : sum_of_team<Threads>(g1) / n;
    gh = sum_of_team<Threads>(gh) / n;
    packs::each(a.n, lane, [&](int p, int i) {
      pack<T, V> out;
#pragma unroll
      for (int k = 0; k < V; ++k) {
        std::int64_t off[Then::operands + 1];
#pragma unroll
        for (int j = 0; j < Then::operands; ++j) off[j] = r * a.row[j] + (i + k) * a.step[j];
        out.v[k] = a.then(static_cast<T>(rstd * (g.v[p][k] - g1 - h.v[p][k] * gh)), off);
      }
      *reinterpret_cast<pack<T, V>*>(a.o + r * a.so + i) = out;
    });
  }
  if constexpr (teams == 1) {
    packs::each(a.n, lane, [&](int p, int i) {
#pragma unroll
      for (int k = 0; k < V; ++k)
        for (int s = 0; s < 2; ++s)
          a.part[(std::int64_t{blockIdx.x} * 2 + s) * a.n + i + k] = static_cast<double>(sums[s][p][k]);
    });
  } else {
    __shared__ double total[Packs * V * warp_threads];  // of the block, for one sum: [pack][element][lane]
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      for (int j = 0; j < teams; ++j) {
        if (own == j)
#pragma unroll
          for (int p = 0; p < Packs; ++p)
#pragma unroll
            for (int k = 0; k < V; ++k) {
              double& t = total[(p * V + k) * warp_threads + lane];
              t = (j == 0 ? 0.0 : t) + static_cast<double>(sums[s][p][k]);
            }
        __syncthreads();
      }
      double* const part = a.part + (std::int64_t{blockIdx.x} * 2 + s) * a.n;
      for (int e = static_cast<int>(threadIdx.x); e < Packs * V * warp_threads; e += joined_threads) {
        const int pack_element = e / warp_threads, p = pack_element / V, k = pack_element % V;
        if (const int column = (p * warp_threads + e % warp_threads) * V + k; column < a.n) part[column] = total[e];
      }
      __syncthreads();
    }
  }
}

// A warp's lanes take a column each, of the weight's sums and then of the bias's; the block's warps take turns at the parts.
template <class T>
__global__ void __launch_bounds__(joined_threads)
    joined_sums_kernel(const double* part, int blocks, std::int64_t n, T* dw, T* db) {
  __shared__ double joined[joined_warps][warp_threads];
  const int lane = static_cast<int>(threadIdx.x % warp_threads), warp = static_cast<int>(threadIdx.x / warp_threads);
  const std::int64_t column = std::int64_t{blockIdx.x} * warp_threads + lane;
  double v = 0;
  if (column < 2 * n)
#pragma unroll 8
    for (int b = warp; b < blocks; b += joined_warps) v += part[b * 2 * n + column];
  joined[warp][lane] = v;
  __syncthreads();
  if (warp != 0 || column >= 2 * n) return;
  v = 0;
  for (int j = 0; j < joined_warps; ++j) v += joined[j][lane];
  if (column < n) dw[column] = static_cast<T>(v);
  else if (db) db[column - n] = static_cast<T>(v);
}

template <class T, int Packs, int Threads, class Then>
void launch_joined_rows(const joined_rows<T, Then>& a, T* dw, T* db, context& ctx) {
  constexpr int teams = joined_threads / Threads;
  const std::int64_t worth = (a.count + teams - 1) / teams, at_once = std::int64_t{2} * ctx.multiprocessors,
                     most = at_once < joined_blocks ? at_once : joined_blocks;
  const auto blocks = static_cast<unsigned>(worth < most ? worth : most);
  launch(op_code::norm_dx_dw, &joined_rows_kernel<T, Packs, Threads, Then>, blocks, joined_threads, ctx.stream, a);
  launch(op_code::norm_dx_dw, &joined_sums_kernel<T>, static_cast<unsigned>((2 * a.n + warp_threads - 1) / warp_threads),
         joined_threads, ctx.stream, static_cast<const double*>(a.part), static_cast<int>(blocks), a.n, dw, db);
}

// False, and nothing is launched, where rows do not lie so.
template <class T, class Then>
bool run_joined_rows(const call& c, const Then& then, T* dw, T* db, context& ctx) {
  constexpr int K = 3 + Then::operands;
  const int last = c.l[0].rank - 1;
  const std::int64_t n = c.l[0].ext[last];
  walk<K> rows;
  for (int d = 0; d < last; ++d) {
    std::int64_t s[K]{c.l[0].str[d], c.l[1].str[d], c.l[result].str[d]};
    for (int j = 0; j < Then::operands; ++j) s[3 + j] = epilogue_stride(c, j, d);
    rows.push(c.l[0].ext[d], s);
  }
  rows.merge();
  const bool packs = rows.rank == 1 && rows.ext[0] > 0 && fits_packs<T>(n, joined_threads, block_row_packs) &&
                     begins_packs<T>(rows, 0, c.p[0], c.l[0].str[last]) &&
                     begins_packs<T>(rows, 1, c.p[1], c.l[1].str[last]) &&
                     begins_packs<T>(rows, 2, c.p[result], c.l[result].str[last]) && c.l[2].str[0] == 1 &&
                     reinterpret_cast<std::uintptr_t>(c.p[2]) % 16 == 0;
  if (!packs) return false;
  joined_rows<T, Then> a{rows.ext[0],
                         n,
                         rows.str[0][0],
                         rows.str[1][0],
                         rows.str[2][0],
                         as<T>(c.p[0]),
                         as<T>(c.p[1]),
                         as<T>(c.p[2]),
                         as<T>(c.p[result]),
                         as<double>(c.workspace),
                         c.f,
                         attributes_of<norm_attributes>(c.a).rms == 1,
                         then,
                         {},
                         {}};
  for (int j = 0; j < Then::operands; ++j) {
    a.row[j] = rows.str[3 + j][0];
    a.step[j] = epilogue_stride(c, j, last);
  }
  if (n <= narrow_row_packs * warp_threads * vector_of<T>)
    launch_joined_rows<T, narrow_row_packs, warp_threads>(a, dw, db, ctx);
  else if (fits_packs<T>(n, warp_threads, wide_row_packs<T>))
    launch_joined_rows<T, wide_row_packs<T>, warp_threads>(a, dw, db, ctx);
  else launch_joined_rows<T, block_row_packs, joined_threads>(a, dw, db, ctx);
  return true;
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Norms of rows that a warp keeps in registers, and the sums over rows by packs of columns: each operand is read once, 16 bytes at a
// time. What lies otherwise is for the kernels of device.cuh.
#pragma once

#include <shardwise/operations/norm/record.hpp>
#include <shardwise/runtime/cuda/device/column_sums.cuh>
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
  using S = added_in<T>;
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

// Sums: dy h, with the row's statistics, and if there are two dy.
template <class T>
struct norm_columns {
  using C = computed_in<T>;
  const T *dy, *x;
  const C* stats;
  std::int64_t dy_step, x_step, stats_step, ss;

  template <class S, int Sums, int V>
  __device__ void add(std::int64_t r, std::int64_t column, S (&sums)[Sums][V]) const {
    const pack<T, V> g = *reinterpret_cast<const pack<T, V>*>(dy + r * dy_step + column),
                     v = *reinterpret_cast<const pack<T, V>*>(x + r * x_step + column);
    const C mean = stats[r * stats_step], rstd = stats[r * stats_step + ss];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const C d = static_cast<C>(g.v[k]);
      sums[0][k] += static_cast<S>(d * ((static_cast<C>(v.v[k]) - mean) * rstd));
      if constexpr (Sums > 1) sums[1][k] += static_cast<S>(d);
    }
  }
};
template <class T>
struct store_columns {
  T* out[2];
  __device__ void operator()(int s, std::int64_t column, double total) const { out[s][column] = static_cast<T>(total); }
};

// False, and nothing is launched, where rows do not lie so.
template <class T, int Sums>
bool run_norm_columns(op_code op, const call& c, T* dw, T* db, context& ctx) {
  const layout &dy = c.l[0], &x = c.l[1], &stats = c.l[2];
  const int last = dy.rank - 1;
  const layout* const all[3] = {&dy, &x, &stats};
  const walk<3> rows = row_walk(all, last);
  if (rows.rank != 1 || !begins_packs<T>(rows, 0, c.p[0], dy.str[last]) || !begins_packs<T>(rows, 1, c.p[1], x.str[last]))
    return false;
  return run_column_sums<T, Sums>(op, rows.ext[0], dy.ext[last],
                                  norm_columns<T>{as<T>(c.p[0]), as<T>(c.p[1]), as<computed_in<T>>(c.p[2]), rows.str[0][0],
                                                  rows.str[1][0], rows.str[2][0], stats.str[last]},
                                  store_columns<T>{{dw, db}}, c.workspace, ctx);
}

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

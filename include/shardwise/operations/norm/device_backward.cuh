// SPDX-License-Identifier: Apache-2.0
// What goes back through a norm, in one launch, of rows that do not fit device_joined.cuh's registers or do not lie in whole packs:
// each team takes rows, and adds up what they give to the gradients of weight and bias in scratch of its own; the block that ends last
// adds the teams' sums, in their order.
#pragma once

#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/operations/norm/device_joined.cuh>
#include <shardwise/operations/norm/record.hpp>
#include <shardwise/operations/written/device.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

// Rows by their number, in any number of them: dy, x, result.
struct norm_rows {
  std::int64_t count = 1;
  int rank = 0;
  std::int64_t ext[max_rank]{}, str[3][max_rank]{};

  __device__ void offsets(std::int64_t r, std::int64_t* at) const {
    at[0] = at[1] = at[2] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      const std::int64_t q = d > 0 ? r / ext[d] : 0, i = r - q * ext[d];
      for (int k = 0; k < 3; ++k) at[k] += i * str[k][d];
      r = q;
    }
  }
};

template <class T>
struct norm_dx_dw_arguments {
  norm_rows rows;
  const T *dy, *x, *w;
  T *o, *dw, *db;  // db: null without a bias
  double* sums;    // of each team: for the weight, for the bias
  std::uint32_t* ticket;
  std::int64_t n, sg, sx, sw;
  double eps;
  bool rms;
};

template <class T, int Threads>
__global__ void __launch_bounds__(Threads == warp_threads ? warp_threads * rows_in_block : Threads)
    norm_dx_dw_kernel(const __grid_constant__ norm_dx_dw_arguments<T> a) {
  using C = computed_in<T>;
  const team<Threads> t;
  double* const sum_w = a.sums + std::int64_t{t.first_row()} * 2 * a.n;
  double* const sum_b = sum_w + a.n;
  for (std::int64_t i = t.lane(); i < a.n; i += Threads) sum_w[i] = sum_b[i] = 0;
  for (std::int64_t r = t.first_row(); r < a.rows.count; r += t.row_step()) {
    std::int64_t at[3];
    a.rows.offsets(r, at);
    const T *const dy = a.dy + at[0], *const x = a.x + at[1];
    T* const o = a.o + at[2];
    double mean = 0, square = 0;
    if (!a.rms) {
      for (std::int64_t i = t.lane(); i < a.n; i += Threads) mean += static_cast<double>(x[i * a.sx]);
      mean = t.sum(mean) / static_cast<double>(a.n);
    }
    for (std::int64_t i = t.lane(); i < a.n; i += Threads) {
      const double d = static_cast<double>(x[i * a.sx]) - mean;
      square += d * d;
    }
    square = t.sum(square);
    const C m = static_cast<C>(mean), s = static_cast<C>(1 / math<double>::sqrt(square / static_cast<double>(a.n) + a.eps));
    C g1 = C(0), gh = C(0);
    for (std::int64_t i = t.lane(); i < a.n; i += Threads) {
      const C d = static_cast<C>(dy[i * a.sg]), h = (static_cast<C>(x[i * a.sx]) - m) * s,
              g = d * static_cast<C>(a.w[i * a.sw]);
      g1 += g;
      gh += g * h;
      sum_w[i] += static_cast<double>(d * h);
      sum_b[i] += static_cast<double>(d);
    }
    g1 = a.rms ? C(0) : t.sum(g1) / static_cast<C>(a.n);
    gh = t.sum(gh) / static_cast<C>(a.n);
    for (std::int64_t i = t.lane(); i < a.n; i += Threads)
      o[i] = static_cast<T>(s * (static_cast<C>(dy[i * a.sg]) * static_cast<C>(a.w[i * a.sw]) - g1 -
                                 (static_cast<C>(x[i * a.sx]) - m) * s * gh));
  }
  if (!last_to_arrive(a.ticket, gridDim.x)) return;
  const std::int64_t teams = std::int64_t{gridDim.x} * team<Threads>::rows;
  for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    double w = 0, b = 0;
    for (std::int64_t k = 0; k < teams; ++k) {
      w += arrived(a.sums + 2 * k * a.n + i);
      b += arrived(a.sums + (2 * k + 1) * a.n + i);
    }
    a.dw[i] = static_cast<T>(w);
    if (a.db) a.db[i] = static_cast<T>(b);
  }
}

}  // namespace detail

template <>
struct kernel<op_code::norm_dx_dw> {
  template <class T>
  static void run(const call& c, context& ctx) {
    if (!in_packs<T>(c, no_epilogue{}, ctx)) by_teams<T>(c, ctx);
  }
  // In the kernel where rows are kept in registers, else a launch in place.
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    if (in_packs<T>(c, epilogue_of<T, E>(c), ctx)) return;
    by_teams<T>(c, ctx);
    evaluate<T, E>(op_code::norm_dx_dw, c, ctx);
  }

 private:
  template <class T, class Then>
  static bool in_packs(const call& c, const Then& then, context& ctx) {
    T* const dw = as<T>(c.p[3]);
    const bool biased = attributes_of<norm_attributes>(c.a).biased != 0;
    return detail::run_joined_rows<T>(c, then, dw, biased ? dw + c.l[3].str[0] : nullptr, ctx);
  }
  template <class T>
  static void by_teams(const call& c, context& ctx) {
    const int last = c.l[0].rank - 1;
    detail::norm_dx_dw_arguments<T> a{};
    walk<3> rows;
    for (int d = 0; d < last; ++d) {
      const std::int64_t s[3] = {c.l[0].str[d], c.l[1].str[d], c.l[result].str[d]};
      rows.push(c.l[0].ext[d], s);
    }
    rows.merge();
    a.rows.rank = rows.rank;
    for (int d = 0; d < rows.rank; ++d) {
      a.rows.count *= rows.ext[d];
      a.rows.ext[d] = rows.ext[d];
      for (int k = 0; k < 3; ++k) a.rows.str[k][d] = rows.str[k][d];
    }
    const auto of = attributes_of<norm_attributes>(c.a);
    a.dy = as<T>(c.p[0]);
    a.x = as<T>(c.p[1]);
    a.w = as<T>(c.p[2]);
    a.o = as<T>(c.p[result]);
    a.dw = as<T>(c.p[3]);
    a.db = of.biased != 0 ? a.dw + c.l[3].str[0] : nullptr;
    a.n = c.l[0].ext[last];
    a.sg = c.l[0].str[last];
    a.sx = c.l[1].str[last];
    a.sw = c.l[2].str[0];
    a.eps = c.f;
    a.rms = of.rms == 1;
    a.ticket = ctx.tickets;
    a.sums = as<double>(c.workspace);
    const std::int64_t most = operations::norm_dx_dw_blocks,
                       blocks = a.n <= short_row ? (a.rows.count + rows_in_block - 1) / rows_in_block : a.rows.count;
    const auto grid = static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
    if (a.n <= short_row)
      launch(op_code::norm_dx_dw, &detail::norm_dx_dw_kernel<T, warp_threads>, grid, warp_threads * rows_in_block,
             ctx.stream, a);
    else launch(op_code::norm_dx_dw, &detail::norm_dx_dw_kernel<T, block_threads>, grid, block_threads, ctx.stream, a);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

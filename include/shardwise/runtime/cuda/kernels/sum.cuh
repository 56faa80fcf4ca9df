// SPDX-License-Identifier: Apache-2.0
// Sums over dims: sum, mean, sum of squares, the weight gradient of a norm, and the adjoint that spreads a cotangent.
// No float is added atomically: equal inputs give equal bits, run after run and on every device.
#pragma once

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/runtime/cuda/kernels/team.cuh>
#include <shardwise/runtime/device_workspace.hpp>
#include <shardwise/runtime/host/kernels/sum.hpp>

namespace shardwise::cuda {

// What two parts of a reduction make together, from `start`.
struct sum_fold {
  static constexpr double start = 0;
  __device__ double operator()(double a, double b) const { return a + b; }
};

namespace detail {

// Where a reduction's results go: the output itself, or with more than one chunk the scratch, [output][chunk].
template <class T>
struct reduction_target {
  T* out;
  double* partial;
  T count;                      // the mean's, or 1
  std::int64_t chunks, length;  // points in a chunk

  __device__ void store(std::int64_t at, std::int64_t output, std::int64_t chunk, double total) const {
    if (chunks > 1)
      partial[output * chunks + chunk] = total;
    else
      out[at] = static_cast<T>(total) / count;
  }
};

// The summed walk has 64-bit indices where it is a single run, so that a whole parameter's gradient may be one.
template <int K>
__device__ void summed_offsets(const strided<K>& s, std::int64_t i, std::int64_t* off) {
  if (s.rank == 1)
    for (int k = 0; k < K; ++k) off[k] = i * s.str[k][0];
  else
    s.offsets(static_cast<std::uint32_t>(i), off);
}

// A team for each output and chunk, its lanes along the summed dims.
template <class T, class Fold, class Value, int K, int Threads>
__global__ void __launch_bounds__(Threads == warp_threads ? warp_threads * rows_in_block : Threads)
    reduce_rows_kernel(const __grid_constant__ strided<K> kept, const __grid_constant__ strided<K> summed,
                       std::int64_t count, const Value value, const reduction_target<T> target) {
  const team<Threads> t;
  const std::int64_t chunk = blockIdx.y, begin = chunk * target.length;
  const std::int64_t end = begin + target.length < count ? begin + target.length : count;
  for (std::uint32_t r = t.first_row(); r < kept.count; r += t.row_step()) {
    std::int64_t at[K];
    kept.offsets(r, at);
    double total = Fold::start;
#pragma unroll 4
    for (std::int64_t i = begin + t.lane(); i < end; i += Threads) {
      std::int64_t off[K];
      summed_offsets(summed, i, off);
      for (int k = 1; k < K; ++k) off[k] += at[k];
      total = Fold{}(total, value(off));
    }
    total = t.reduce(total, Fold{});
    if (t.lane() == 0) target.store(at[0], r, chunk, total);
  }
}

inline constexpr int column_rows = 8;

// A block for each tile of outputs that lie side by side and each chunk; threads of a warp along the outputs.
template <class T, class Fold, class Value, int K>
__global__ void __launch_bounds__(runtime::column_tile* column_rows)
    reduce_columns_kernel(const __grid_constant__ strided<K> kept, const __grid_constant__ strided<K> summed,
                          std::int64_t count, const Value value, const reduction_target<T> target) {
  constexpr int tile = runtime::column_tile;
  __shared__ double part[column_rows][tile];
  const int lane = static_cast<int>(threadIdx.x % tile), row = static_cast<int>(threadIdx.x / tile);
  const std::int64_t chunk = blockIdx.y, begin = chunk * target.length;
  const std::int64_t end = begin + target.length < count ? begin + target.length : count;
  for (std::uint32_t first = blockIdx.x * tile; first < kept.count; first += gridDim.x * tile) {
    const std::uint32_t r = first + static_cast<std::uint32_t>(lane);
    std::int64_t at[K]{};
    double total = Fold::start;
    if (r < kept.count) {
      kept.offsets(r, at);
#pragma unroll 4
      for (std::int64_t i = begin + row; i < end; i += column_rows) {
        std::int64_t off[K];
        summed_offsets(summed, i, off);
        for (int k = 1; k < K; ++k) off[k] += at[k];
        total = Fold{}(total, value(off));
      }
    }
    part[row][lane] = total;
    __syncthreads();
    if (row == 0 && r < kept.count) {
      for (int j = 1; j < column_rows; ++j) total = Fold{}(total, part[j][lane]);
      target.store(at[0], r, chunk, total);
    }
    __syncthreads();  // before the next tile writes to `part`
  }
}

// Joins the chunks of each output, a warp for each.
template <class T, class Fold, int K>
__global__ void __launch_bounds__(warp_threads* rows_in_block)
    reduce_chunks_kernel(const __grid_constant__ strided<K> kept, const reduction_target<T> target) {
  const team<warp_threads> t;
  for (std::uint32_t r = t.first_row(); r < kept.count; r += t.row_step()) {
    std::int64_t at[K];
    kept.offsets(r, at);
    double total = Fold::start;
    for (std::int64_t i = t.lane(); i < target.chunks; i += warp_threads)
      total = Fold{}(total, target.partial[r * target.chunks + i]);
    total = t.reduce(total, Fold{});
    if (t.lane() == 0) target.out[at[0]] = static_cast<T>(total) / target.count;
  }
}

// out[kept] = sum over summed of value(offsets) / divisor. Operand 0 of both walks is the output, operand 1 the one
// whose storage order decides how threads are laid out.
template <class T, class Fold = sum_fold, int K, class Value>
void reduce(op_code op, const call& c, const walk<K>& kept, const walk<K>& summed, const Value& value, T divisor,
            context& ctx) {
  const std::int64_t count = points(summed), outputs = points(kept);
  const bool columns = outputs >= 16 && kept.str[1][kept.rank - 1] == 1 && summed.str[1][summed.rank - 1] != 1;
  if (count >= most_points && summed.rank > 1)
    throw device_error(name_of(op),
                       "2^31 or more elements are summed and do not lie in one run; make the operand contiguous");
  const std::int64_t zero[K]{};
  strided<K> s = make_strided(summed, zero);
  reduction_target<T> target{as<T>(c.p[result]), as<double>(c.workspace), divisor,
                             runtime::reduction_chunks(outputs, count, columns), 0};
  target.length = (count + target.chunks - 1) / target.chunks;
  // more than one chunk: fewer than 2^31 outputs, hence one piece
  each_piece(kept, [&](const walk<K>& w, const std::int64_t* base) {
    const strided<K> k = make_strided(w, base);
    const unsigned chunks = static_cast<unsigned>(target.chunks);
    const auto blocks = [&](std::int64_t of) { return grid_for((std::int64_t{k.count} + of - 1) / of, ctx); };
    if (columns)
      launch(op, &reduce_columns_kernel<T, Fold, Value, K>, dim3(blocks(runtime::column_tile), chunks),
             runtime::column_tile * column_rows, ctx.stream, k, s, count, value, target);
    else if (count <= short_row)
      launch(op, &reduce_rows_kernel<T, Fold, Value, K, warp_threads>, dim3(blocks(rows_in_block), chunks),
             warp_threads * rows_in_block, ctx.stream, k, s, count, value, target);
    else
      launch(op, &reduce_rows_kernel<T, Fold, Value, K, block_threads>, dim3(blocks(1), chunks), block_threads,
             ctx.stream, k, s, count, value, target);
    if (chunks > 1)
      launch(op, &reduce_chunks_kernel<T, Fold, K>, blocks(rows_in_block), warp_threads * rows_in_block, ctx.stream, k,
             target);
  });
}

template <class T, bool Square>
struct element_value {
  const T* x;
  __device__ double operator()(const std::int64_t* off) const {
    const double v = static_cast<double>(x[off[1]]);
    return Square ? v * v : v;
  }
};

template <class T, bool Square>
void sum_into(op_code op, const call& c, T divisor, context& ctx) {
  const layout& x = c.l[0];
  std::int64_t so[max_rank]{};
  host::detail::sum_strides(c.a, x, c.l[result], so);
  walk<2> kept, summed;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t s[2] = {so[d], x.str[d]};
    ((c.a.v[0] >> d) & 1 ? summed : kept).push(x.ext[d], s);
  }
  kept.merge();
  summed.merge();
  reduce<T>(op, c, kept, summed, element_value<T, Square>{as<T>(c.p[0])}, divisor, ctx);
}

}  // namespace detail

template <>
struct kernel<op_code::sum> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = c.a.v[2] == 0 ? 1 : host::detail::summed_count(c.a, c.l[0]);
    detail::sum_into<T, false>(op_code::sum, c, static_cast<T>(n), ctx);
  }
};

namespace detail {

// Sums of squares side by side: most gradients are small, and a launch each would be most of a small model's norm. As many
// as fit the 4 KB of a kernel's arguments; a large one fills the device alone.
template <class T>
struct square_item {
  const T* x;
  std::int64_t n;
  T* out;
  const T* add[max_inputs - 1];  // added to the sum, in this order; null: no more
};
using runtime::squares_at_once;
inline constexpr std::int64_t small_square = std::int64_t{1} << 17;
template <class T>
struct square_list {
  square_item<T> item[squares_at_once];
  int count;
};

template <class T>
__global__ void __launch_bounds__(block_threads) squares_kernel(const __grid_constant__ square_list<T> list) {
  const team<block_threads> t;
  const square_item<T>& s = list.item[blockIdx.x];
  double total = 0;
  for (std::int64_t i = t.lane(); i < s.n; i += block_threads) {
    const double v = static_cast<double>(s.x[i]);
    total += v * v;
  }
  total = t.sum(total);
  if (t.lane() == 0) *s.out = static_cast<T>(total);
}
// Sum k of `sums` is item k's own. One after the other: an item may add what an item before it has become, and a result
// may lie where a value was that only items before it read.
template <class T>
__global__ void add_squares_kernel(const __grid_constant__ square_list<T> list, const T* sums) {
  for (int k = 0; k < list.count; ++k) {
    const square_item<T>& s = list.item[k];
    T total = sums[k];
    for (const T* a : s.add)
      if (a) total = total + *a;
    *s.out = total;
  }
}

}  // namespace detail

template <>
struct kernel<op_code::sumsq> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::sum_into<T, true>(op_code::sumsq, c, T(1), ctx);
  }

  // Of several, each adds the operands behind its first to its sum; one alone leaves that to its expression.
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    if (count == 1) return run<T>(calls[0], ctx);
    bool adds = false;
    for (std::size_t i = 0; i < count; ++i) adds = adds || calls[i].all_inputs > calls[i].inputs;
    // Sums that others are added to are kept aside first, in front of the scratch of the large ones.
    T* const aside = adds ? as<T>(calls[0].workspace) : nullptr;
    detail::square_list<T> small, all;
    small.count = all.count = 0;
    const auto flush = [&] {
      if (small.count > 0)
        launch(op_code::sumsq, &detail::squares_kernel<T>, static_cast<unsigned>(small.count), block_threads, ctx.stream, small);
      if (adds && all.count > 0)
        launch(op_code::sumsq, &detail::add_squares_kernel<T>, 1, 1, ctx.stream, all, static_cast<const T*>(aside));
      small.count = all.count = 0;
    };
    for (std::size_t i = 0; i < count; ++i) {
      call c = calls[i];
      detail::square_item<T> s{as<T>(c.p[0]), c.l[0].numel(), as<T>(c.p[result]), {}};
      for (int k = c.inputs; k < c.all_inputs; ++k) s.add[k - c.inputs] = as<T>(c.p[k]);
      all.item[all.count] = s;
      if (adds) {
        s.out = aside + all.count;
        c.p[result] = s.out;
        c.workspace = static_cast<std::byte*>(c.workspace) + runtime::squares_aside_bytes;
      }
      if (is_dense(c.l[0]) && s.n <= detail::small_square && c.l[result].numel() == 1)
        small.item[small.count++] = s;
      else
        run<T>(c, ctx);
      if (++all.count == detail::squares_at_once) flush();
    }
    flush();
  }

 private:
  static bool is_dense(const layout& x) { return static_cast<std::int64_t>(x.span()) == x.numel(); }
};

template <class T>
struct norm_dw_value {
  const T *dy, *x, *stats;
  std::int64_t ss;
  __device__ double operator()(const std::int64_t* off) const {
    return static_cast<double>(dy[off[1]] * ((x[off[2]] - stats[off[3]]) * stats[off[3] + ss]));
  }
};

// dw = sum over rows of dy (x - mean) rstd
template <>
struct kernel<op_code::norm_dw> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout &dy = c.l[0], &x = c.l[1], &stats = c.l[2];
    const int last = dy.rank - 1;
    walk<4> kept, summed;
    for (int d = 0; d <= last; ++d) {
      const std::int64_t s[4] = {d == last ? 1 : 0, dy.str[d], x.str[d], d == last ? 0 : stats.str[d]};
      (d == last ? kept : summed).push(dy.ext[d], s);
    }
    kept.merge();
    summed.merge();
    detail::reduce<T>(op_code::norm_dw, c, kept, summed,
                      norm_dw_value<T>{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), stats.str[last]}, T(1), ctx);
  }
};

namespace detail {
// The sum of operand 0 over all dims but the last, or those of `mask`, to `to`.
template <class T>
void sum_rows(const call& c, const layout& to, void* p, context& ctx, std::int64_t mask = 0) {
  call s;
  s.a.v[0] = mask != 0 ? mask : (std::int64_t{1} << (c.l[0].rank - 1)) - 1;
  s.inputs = 1;
  s.node = c.node;
  s.l[0] = c.l[0];
  s.p[0] = c.p[0];
  s.l[result] = to;
  s.p[result] = p;
  s.workspace = c.workspace;
  kernel<op_code::sum>::run<T>(s, ctx);
}
}  // namespace detail

template <>
struct kernel<op_code::norm_grads> {
  template <class T>
  static void run(const call& c, context& ctx) {
    call w = c;
    w.inputs = 3;
    w.l[result] = c.l[3];
    w.p[result] = c.p[3];
    kernel<op_code::norm_dw>::run<T>(w, ctx);
    detail::sum_rows<T>(c, c.l[result], c.p[result], ctx);
  }
};

template <class T>
struct expand_functor {
  T count;
  __device__ T operator()(T x) const { return x / count; }
};

// Adjoint of sum: operand 0 is the (smaller) cotangent, spread over the result's summed dims.
template <>
struct kernel<op_code::expand> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const layout& out = c.l[result];
    std::int64_t si[max_rank]{};
    host::detail::sum_strides(c.a, out, c.l[0], si);
    walk<2> w;
    for (int d = 0; d < out.rank; ++d) {
      const std::int64_t s[2] = {out.str[d], si[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    const T count = static_cast<T>(c.a.v[2] ? host::detail::summed_count(c.a, out) : 1);
    map(op_code::expand, w, pointers<T, 2>{{as<T>(c.p[result]), as<T>(c.p[0])}}, expand_functor<T>{count}, ctx);
  }
};

}  // namespace shardwise::cuda

// SPDX-License-Identifier: Apache-2.0
// Sums over dims: sum, mean, sum of squares, the weight gradient of a norm, and the adjoint that spreads a cotangent.
// No float is added atomically: equal inputs give equal bits, run after run and on every device.
#pragma once

#include <type_traits>

#include <shardwise/runtime/cuda/kernels/arrival.cuh>
#include <shardwise/runtime/cuda/kernels/fused.cuh>
#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/runtime/cuda/kernels/team.cuh>
#include <shardwise/runtime/cuda/workspace.hpp>
#include <shardwise/runtime/host/kernels/sum.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// What two parts of a reduction make together, from `start`.
struct sum_fold {
  static constexpr double start = 0;
  template <class Part>
  __device__ Part operator()(const Part& a, const Part& b) const {
    return a + b;
  }
};

namespace detail {

// A reduction cut into more than one chunk: the parts lie [output][chunk] in the scratch until the last chunk of an output,
// or of a tile of them, arrives and joins them in their order.
template <class Part>
struct reduction_chunks {
  Part* part;
  std::uint32_t* ticket;
  std::int64_t count, length;  // of chunks; points in a chunk
};

template <class Part, class Fold>
__device__ Part nothing() {
  if constexpr (std::is_same_v<Part, double>)
    return Fold::start;
  else
    return {Fold::start, Fold::start};
}

// The summed walk has 64-bit indices where it is a single run, so that a whole parameter's gradient may be one.
template <int K>
__device__ void summed_offsets(const strided<K>& s, std::int64_t i, std::int64_t* off) {
  if (s.rank == 1)
    for (int k = 0; k < K; ++k) off[k] = i * s.str[k][0];
  else
    s.offsets(static_cast<std::uint32_t>(i), off);
}

static_assert(short_row <= runtime::row_chunk, "rows that a warp takes are not cut into chunks");

// A team for each output and chunk, its lanes along the summed dims. finish(offsets, whole reduction) writes an output.
template <class Fold, class Part, class Value, class Finish, int K, int Threads>
__global__ void __launch_bounds__(Threads == warp_threads ? warp_threads * rows_in_block : Threads)
    reduce_rows_kernel(const __grid_constant__ strided<K> kept, const __grid_constant__ strided<K> summed,
                       std::int64_t count, const Value value, const Finish finish, const reduction_chunks<Part> chunks) {
  const team<Threads> t;
  const std::int64_t chunk = blockIdx.y, begin = chunk * chunks.length;
  const std::int64_t end = begin + chunks.length < count ? begin + chunks.length : count;
  for (std::uint32_t r = t.first_row(); r < kept.count; r += t.row_step()) {
    std::int64_t at[K];
    kept.offsets(r, at);
    Part total = nothing<Part, Fold>();
#pragma unroll 4
    for (std::int64_t i = begin + t.lane(); i < end; i += Threads) {
      std::int64_t off[K];
      summed_offsets(summed, i, off);
      for (int k = 1; k < K; ++k) off[k] += at[k];
      total = Fold{}(total, value(off));
    }
    total = t.reduce(total, Fold{});
    if constexpr (Threads == block_threads) {
      if (chunks.count > 1) {
        Part* const parts = chunks.part + r * chunks.count;
        if (t.lane() == 0) parts[chunk] = total;
        if (!last_to_arrive(chunks.ticket + r, static_cast<std::uint32_t>(chunks.count))) continue;
        total = nothing<Part, Fold>();
        for (std::int64_t i = t.lane(); i < chunks.count; i += Threads) total = Fold{}(total, arrived(parts + i));
        total = t.reduce(total, Fold{});
      }
    }
    if (t.lane() == 0) finish(at, total);
  }
}

inline constexpr int column_rows = 8;

// A block for each tile of outputs that lie side by side and each chunk; threads of a warp along the outputs.
template <class Fold, class Part, class Value, class Finish, int K>
__global__ void __launch_bounds__(runtime::column_tile* column_rows)
    reduce_columns_kernel(const __grid_constant__ strided<K> kept, const __grid_constant__ strided<K> summed,
                          std::int64_t count, const Value value, const Finish finish, const reduction_chunks<Part> chunks) {
  constexpr int tile = runtime::column_tile;
  __shared__ Part part[column_rows][tile];
  const int lane = static_cast<int>(threadIdx.x % tile), row = static_cast<int>(threadIdx.x / tile);
  const std::int64_t chunk = blockIdx.y, begin = chunk * chunks.length;
  const std::int64_t end = begin + chunks.length < count ? begin + chunks.length : count;
  for (std::uint32_t first = blockIdx.x * tile; first < kept.count; first += gridDim.x * tile) {
    const std::uint32_t r = first + static_cast<std::uint32_t>(lane);
    const bool own = r < kept.count;
    std::int64_t at[K]{};
    Part total = nothing<Part, Fold>();
    if (own) {
      kept.offsets(r, at);
#pragma unroll 4
      for (std::int64_t i = begin + row; i < end; i += column_rows) {
        std::int64_t off[K];
        summed_offsets(summed, i, off);
        for (int k = 1; k < K; ++k) off[k] += at[k];
        total = Fold{}(total, value(off));
      }
    }
    // the tile's rows together, in row 0
    const auto join_rows = [&] {
      part[row][lane] = total;
      __syncthreads();
      if (row == 0)
        for (int j = 1; j < column_rows; ++j) total = Fold{}(total, part[j][lane]);
    };
    join_rows();
    bool whole = true;
    if (chunks.count > 1) {
      Part* const parts = chunks.part + r * chunks.count;
      if (row == 0 && own) parts[chunk] = total;
      whole = last_to_arrive(chunks.ticket + first / tile, static_cast<std::uint32_t>(chunks.count));
      if (whole) {
        total = nothing<Part, Fold>();
        for (std::int64_t i = row; own && i < chunks.count; i += column_rows) total = Fold{}(total, arrived(parts + i));
        join_rows();
      }
    }
    if (whole && row == 0 && own) finish(at, total);
    __syncthreads();  // before the next tile writes to `part`
  }
}

// finish(output's offsets, fold over summed of value(offsets)) for every point of `kept`. Operand 0 of both walks is the
// output, operand 1 the one whose storage order decides how threads are laid out.
template <class Fold, class Part = double, int K, class Value, class Finish>
void reduce_to(op_code op, const call& c, const walk<K>& kept, const walk<K>& summed, const Value& value, const Finish& finish,
               context& ctx) {
  const std::int64_t count = points(summed), outputs = points(kept);
  const bool columns = outputs >= 16 && kept.str[1][kept.rank - 1] == 1 && summed.str[1][summed.rank - 1] != 1;
  if (count >= most_points && summed.rank > 1)
    throw device_error(name_of(op),
                       "2^31 or more elements are summed and do not lie in one run; make the operand contiguous");
  const std::int64_t zero[K]{};
  strided<K> s = make_strided(summed, zero);
  reduction_chunks<Part> chunks{as<Part>(c.workspace), ctx.tickets, runtime::reduction_chunks(outputs, count, columns), 0};
  chunks.length = (count + chunks.count - 1) / chunks.count;
  static_assert(runtime::reduction_blocks / 2 <= ticket_count, "more than one chunk: at most so many outputs or tiles of them");
  // more than one chunk: fewer than 2^31 outputs, hence one piece
  each_piece(kept, [&](const walk<K>& w, const std::int64_t* base) {
    const strided<K> k = make_strided(w, base);
    const unsigned many = static_cast<unsigned>(chunks.count);
    const auto blocks = [&](std::int64_t of) { return grid_for((std::int64_t{k.count} + of - 1) / of, ctx); };
    if (columns)
      launch(op, &reduce_columns_kernel<Fold, Part, Value, Finish, K>, dim3(blocks(runtime::column_tile), many),
             runtime::column_tile * column_rows, ctx.stream, k, s, count, value, finish, chunks);
    else if (count <= short_row)
      launch(op, &reduce_rows_kernel<Fold, Part, Value, Finish, K, warp_threads>, dim3(blocks(rows_in_block), many),
             warp_threads * rows_in_block, ctx.stream, k, s, count, value, finish, chunks);
    else
      launch(op, &reduce_rows_kernel<Fold, Part, Value, Finish, K, block_threads>, dim3(blocks(1), many), block_threads,
             ctx.stream, k, s, count, value, finish, chunks);
  });
}

// Writes reduction / count, and what an expression makes of it; the latter's operands are single elements.
template <class T, class Then = no_epilogue>
struct store_quotient {
  T* out;
  double count;
  Then then;
  __device__ void operator()(const std::int64_t* at, double total) const {
    const std::int64_t off[Then::operands + 1]{};
    out[at[0]] = then(static_cast<T>(total / count), off);
  }
};

// out[kept] = sum over summed of value(offsets) / divisor.
template <class T, class Fold = sum_fold, int K, class Value, class Then = no_epilogue>
void reduce(op_code op, const call& c, const walk<K>& kept, const walk<K>& summed, const Value& value, double divisor,
            context& ctx, const Then& then = {}) {
  reduce_to<Fold>(op, c, kept, summed, value, store_quotient<T, Then>{as<T>(c.p[result]), divisor, then}, ctx);
}

template <class T, bool Square>
struct element_value {
  const T* x;
  __device__ double operator()(const std::int64_t* off) const {
    const double v = static_cast<double>(x[off[1]]);
    return Square ? v * v : v;
  }
};

template <class T, bool Square, class Then = no_epilogue>
void sum_into(op_code op, const call& c, double divisor, context& ctx, const Then& then = {}) {
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
  reduce<T>(op, c, kept, summed, element_value<T, Square>{as<T>(c.p[0])}, divisor, ctx, then);
}

}  // namespace detail

template <>
struct kernel<op_code::sum> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const std::int64_t n = c.a.v[2] == 0 ? 1 : host::detail::summed_count(c.a, c.l[0]);
    detail::sum_into<T, false>(op_code::sum, c, static_cast<double>(n), ctx);
  }
};

namespace detail {

// Sums of squares side by side: most gradients are small, and a launch each would be most of a small model's norm. A large
// one fills the device alone.
template <class T>
struct square_item {
  const T* x;  // null: summed already
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

// A block for each item. Where any adds others, the sums lie `aside` until the last block adds, one item after the other: an
// item may add what an item before it has become, and a result may lie where a value was that only items before it read.
template <class T>
__global__ void __launch_bounds__(block_threads)
    squares_kernel(const __grid_constant__ square_list<T> list, T* aside, std::uint32_t* ticket) {
  const team<block_threads> t;
  const square_item<T>& s = list.item[blockIdx.x];
  if (s.x) {
    double total = 0;
    for (std::int64_t i = t.lane(); i < s.n; i += block_threads) {
      const double v = static_cast<double>(s.x[i]);
      total += v * v;
    }
    total = t.sum(total);
    if (t.lane() == 0) *(aside ? aside + blockIdx.x : s.out) = static_cast<T>(total);
  }
  if (!aside || !last_to_arrive(ticket, gridDim.x) || t.lane() != 0) return;
  for (int k = 0; k < list.count; ++k) {
    const square_item<T>& item = list.item[k];
    T total = arrived(aside + k);
    for (const T* a : item.add)
      if (a) total = total + *a;
    *item.out = total;
  }
}

}  // namespace detail

template <>
struct kernel<op_code::sumsq> {
  template <class T>
  static void run(const call& c, context& ctx) {
    detail::sum_into<T, true>(op_code::sumsq, c, T(1), ctx);
  }
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    if (c.l[result].numel() == 1)
      detail::sum_into<T, true>(op_code::sumsq, c, T(1), ctx, epilogue_of<T, E>(c));
    else {
      run<T>(c, ctx);
      evaluate<T, E>(op_code::sumsq, c, ctx);
    }
  }

  // Of several, each adds the operands behind its first to its sum; one alone leaves that to its expression.
  template <class T>
  static void run_all(const call* calls, std::size_t count, context& ctx) {
    if (count == 1) return run<T>(calls[0], ctx);
    bool adds = false;
    for (std::size_t i = 0; i < count; ++i) adds = adds || calls[i].all_inputs > calls[i].inputs;
    // Sums that others are added to are kept aside first, in front of the scratch of the large ones.
    T* const aside = adds ? as<T>(calls[0].workspace) : nullptr;
    detail::square_list<T> list;
    bool pending = false;  // whether the list's kernel has anything to do
    list.count = 0;
    const auto flush = [&] {
      if (pending || (adds && list.count > 0))
        launch(op_code::sumsq, &detail::squares_kernel<T>, static_cast<unsigned>(list.count), block_threads, ctx.stream, list,
               aside, ctx.tickets);
      list.count = 0;
      pending = false;
    };
    for (std::size_t i = 0; i < count; ++i) {
      call c = calls[i];
      detail::square_item<T> s{as<T>(c.p[0]), c.l[0].numel(), as<T>(c.p[result]), {}};
      for (int k = c.inputs; k < c.all_inputs; ++k) s.add[k - c.inputs] = as<T>(c.p[k]);
      if (is_dense(c.l[0]) && s.n <= detail::small_square && c.l[result].numel() == 1) {
        pending = true;
      } else {
        if (adds) {
          c.p[result] = aside + list.count;
          c.workspace = static_cast<std::byte*>(c.workspace) + runtime::squares_aside_bytes;
        }
        run<T>(c, ctx);
        s.x = nullptr;
      }
      list.item[list.count++] = s;
      if (list.count == detail::squares_at_once) flush();
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

namespace detail {

// Walks of dw = sum over rows of dy (x - mean) rstd: result, dy, x, statistics.
inline void norm_dw_walks(const call& c, walk<4>& kept, walk<4>& summed) {
  const layout &dy = c.l[0], &x = c.l[1], &stats = c.l[2];
  const int last = dy.rank - 1;
  for (int d = 0; d <= last; ++d) {
    const std::int64_t s[4] = {d == last ? 1 : 0, dy.str[d], x.str[d], d == last ? 0 : stats.str[d]};
    (d == last ? kept : summed).push(dy.ext[d], s);
  }
  kept.merge();
  summed.merge();
}
template <class T>
norm_dw_value<T> norm_dw_value_of(const call& c) {
  return {as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), c.l[2].str[c.l[0].rank - 1]};
}

}  // namespace detail

template <>
struct kernel<op_code::norm_dw> {
  template <class T>
  static void run(const call& c, context& ctx) {
    walk<4> kept, summed;
    detail::norm_dw_walks(c, kept, summed);
    detail::reduce<T>(op_code::norm_dw, c, kept, summed, detail::norm_dw_value_of<T>(c), T(1), ctx);
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

namespace detail {

// The weight's and the bias's sum from one reading of dy.
template <class T>
struct norm_grads_value {
  norm_dw_value<T> dw;
  __device__ two_sums operator()(const std::int64_t* off) const { return {dw(off), static_cast<double>(dw.dy[off[1]])}; }
};
template <class T>
struct store_both {
  T *dw, *db;
  __device__ void operator()(const std::int64_t* at, const two_sums& total) const {
    dw[at[0]] = static_cast<T>(total.a);
    db[at[0]] = static_cast<T>(total.b);
  }
};

}  // namespace detail

// norm_dw, to operand 3, and the sum of dy over all dims but the last.
template <>
struct kernel<op_code::norm_grads> {
  template <class T>
  static void run(const call& c, context& ctx) {
    walk<4> kept, summed;
    detail::norm_dw_walks(c, kept, summed);
    detail::reduce_to<sum_fold, two_sums>(op_code::norm_grads, c, kept, summed,
                                          detail::norm_grads_value<T>{detail::norm_dw_value_of<T>(c)},
                                          detail::store_both<T>{as<T>(c.p[3]), as<T>(c.p[result])}, ctx);
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

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::cuda

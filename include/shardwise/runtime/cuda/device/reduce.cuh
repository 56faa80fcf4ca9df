// SPDX-License-Identifier: Apache-2.0
// Reductions over dims of what a function makes of each element, in chunks that one kernel joins. No float is added atomically:
// equal inputs give equal bits, run after run and on every device.
#pragma once

#include <type_traits>

#include <shardwise/runtime/cuda/device/arrival.cuh>
#include <shardwise/runtime/cuda/device/column_sums.cuh>
#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/operations/reduction/scratch.hpp>
#include <shardwise/runtime/host/sums.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
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
  if constexpr (std::is_arithmetic_v<Part>) return static_cast<Part>(Fold::start);
  else return {Fold::start, Fold::start};
}

// The summed walk has 64-bit indices where it is a single run, so that a whole parameter's gradient may be one.
template <int K>
__device__ void summed_offsets(const strided<K>& s, std::int64_t i, std::int64_t* off) {
  if (s.rank == 1)
    for (int k = 0; k < K; ++k) off[k] = i * s.str[k][0];
  else s.offsets(static_cast<std::uint32_t>(i), off);
}

static_assert(short_row <= device_scratch::row_chunk, "rows that a warp takes are not cut into chunks");

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
__global__ void __launch_bounds__(device_scratch::column_tile* column_rows)
    reduce_columns_kernel(const __grid_constant__ strided<K> kept, const __grid_constant__ strided<K> summed,
                          std::int64_t count, const Value value, const Finish finish, const reduction_chunks<Part> chunks) {
  constexpr int tile = device_scratch::column_tile;
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
void reduce_to(op_code op, const call& c, const walk<K>& kept, const walk<K>& summed, const Value& value,
               const Finish& finish, context& ctx) {
  const std::int64_t count = points(summed), outputs = points(kept);
  const bool columns = outputs >= 16 && kept.str[1][kept.rank - 1] == 1 && summed.str[1][summed.rank - 1] != 1;
  if (count >= most_points && summed.rank > 1)
    throw device_error(name_of(op),
                       "2^31 or more elements are summed and do not lie in one run; make the operand contiguous");
  const std::int64_t zero[K]{};
  strided<K> s = make_strided(summed, zero);
  reduction_chunks<Part> chunks{as<Part>(c.workspace), ctx.tickets,
                                device_scratch::reduction_chunks(outputs, count, columns), 0};
  chunks.length = (count + chunks.count - 1) / chunks.count;
  static_assert(device_scratch::reduction_blocks / 2 <= ticket_count,
                "more than one chunk: at most so many outputs or tiles of them");
  // more than one chunk: fewer than 2^31 outputs, hence one piece
  each_piece(kept, [&](const walk<K>& w, const std::int64_t* base) {
    const strided<K> k = make_strided(w, base);
    const unsigned many = static_cast<unsigned>(chunks.count);
    const auto blocks = [&](std::int64_t of) { return grid_for((std::int64_t{k.count} + of - 1) / of, ctx); };
    if (columns)
      launch(op, &reduce_columns_kernel<Fold, Part, Value, Finish, K>, dim3(blocks(device_scratch::column_tile), many),
             device_scratch::column_tile * column_rows, ctx.stream, k, s, count, value, finish, chunks);
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
  // Integers have sums and no means.
  __device__ void operator()(const std::int64_t* at, std::int64_t total) const {
    const std::int64_t off[Then::operands + 1]{};
    out[at[0]] = then(static_cast<T>(total), off);
  }
};

// What elements of T are summed in.
template <class T>
using sum_of = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

// out[kept] = sum over summed of value(offsets) / divisor.
template <class T, class Fold = sum_fold, int K, class Value, class Then = no_epilogue>
void reduce(op_code op, const call& c, const walk<K>& kept, const walk<K>& summed, const Value& value, double divisor,
            context& ctx, const Then& then = {}) {
  reduce_to<Fold, sum_of<T>>(op, c, kept, summed, value, store_quotient<T, Then>{as<T>(c.p[result]), divisor, then}, ctx);
}

template <class T, bool Square>
struct element_value {
  const T* x;
  __device__ sum_of<T> operator()(const std::int64_t* off) const {
    const auto v = static_cast<sum_of<T>>(x[off[1]]);
    return Square ? v * v : v;
  }
};

// Sums are stored as elements of Sum.
template <class T, bool Square, class Sum = T, class Then = no_epilogue>
void sum_into(op_code op, const call& c, double divisor, context& ctx, const Then& then = {}) {
  const layout& x = c.l[0];
  std::int64_t so[max_rank]{};
  host::detail::sum_strides(c.a, x, c.l[result], so);
  walk<2> kept, summed;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t s[2] = {so[d], x.str[d]};
    ((attributes_of<sum_attributes>(c.a).dims >> d) & 1 ? summed : kept).push(x.ext[d], s);
  }
  kept.merge();
  summed.merge();
  reduce<Sum>(op, c, kept, summed, element_value<T, Square>{as<T>(c.p[0])}, divisor, ctx, then);
}

}  // namespace detail

namespace detail {
// The sum of operand 0 over all dims but the last, or those of `mask`, to `to`.
template <class T>
void sum_rows(const call& c, const layout& to, void* p, context& ctx, std::int64_t mask = 0) {
  call s;
  const std::int64_t rows = (std::int64_t{1} << (c.l[0].rank - 1)) - 1, dims = mask != 0 ? mask : rows;
  if (dims == rows && to.rank == 1 && sum_columns<T>(op_code::sum, c.l[0], c.p[0], as<T>(p), to.str[0], 1, c.workspace, ctx))
    return;
  s.a = pack_attributes(sum_attributes{.dims = dims, .kept = 0, .mean = 0});
  s.inputs = 1;
  s.node = c.node;
  s.l[0] = c.l[0];
  s.p[0] = c.p[0];
  s.l[result] = to;
  s.p[result] = p;
  s.workspace = c.workspace;
  sum_into<T, false>(op_code::sum, s, 1, ctx);
}
}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Rows of a table chosen by index on a device, and the table's gradient.
#pragma once

#include <shardwise/runtime/cuda/device/epilogue.cuh>
#include <shardwise/runtime/cuda/device/index_guard.cuh>
#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/team.cuh>
#include <shardwise/operations/reduction/scratch.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// --- embedding ------------------------------------------------------------------------------------------------------

namespace detail {

// Strides of an expression's operands along the last dim.
template <int Operands>
struct along_rows {
  std::int64_t step[Operands + 1];
};

// A thread for each pack of V elements of the result; `packs` of them make a row. Of a table of `limit` rows the block has
// `table_rows` from the first_row-th on; rows that it has not are zeros.
template <class T, int V, class Then>
__global__ void __launch_bounds__(256)
    embedding_kernel(const __grid_constant__ strided<2 + Then::operands> rows, const fast_divisor packs, const T* table,
                     std::int64_t limit, std::int64_t first_row, std::int64_t table_rows, std::int64_t row_step,
                     std::int64_t step, const std::int32_t* index, T* out, const index_guard guard, const Then then,
                     const __grid_constant__ along_rows<Then::operands> follow) {
  const std::uint32_t total = rows.count * packs.divisor;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const std::uint32_t r = packs.quotient(i), column = (i - r * packs.divisor) * V;
    std::int64_t at[2 + Then::operands];
    rows.offsets(r, at);
    pack<T, V> x{};
    const std::int64_t id = guard.checked(index[at[0]], limit) - first_row;
    if (id >= 0 && id < table_rows) {
      const T* const from = table + id * row_step + column * step;
      if constexpr (V > 1) x = *reinterpret_cast<const pack<T, V>*>(from);
      else x.v[0] = *from;
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      std::int64_t off[Then::operands + 1];
#pragma unroll
      for (int j = 0; j < Then::operands; ++j) off[j] = at[2 + j] + (column + v) * follow.step[j];
      x.v[v] = then(x.v[v], off);
    }
    *reinterpret_cast<pack<T, V>*>(out + at[1] + column) = x;
  }
}

inline bool aligned16(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

}  // namespace detail

template <>
struct kernel<op_code::embedding> {
  template <class T>
  static void run(const call& c, context& ctx) {
    look_up<T>(c, no_epilogue{}, ctx);
  }
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    look_up<T>(c, epilogue_of<T, E>(c), ctx);
  }

 private:
  template <class T, class Then>
  static void look_up(const call& c, const Then& then, context& ctx) {
    constexpr int K = 2 + Then::operands, V = vector_of<T>;
    const layout &table = c.l[0], &index = c.l[1], &out = c.l[result];
    const std::int64_t n = table.ext[1];
    if (n == 0) return;
    walk<K> rows;  // indices, result, the expression's operands
    for (int d = 0; d < index.rank; ++d) {
      std::int64_t s[K] = {index.str[d], out.str[d]};
      for (int j = 0; j < Then::operands; ++j) s[2 + j] = epilogue_stride(c, j, d);
      rows.push(index.ext[d], s);
    }
    rows.merge();
    bool packs = n % V == 0 && table.str[1] == 1 && table.str[0] % V == 0 && detail::aligned16(c.p[0]) &&
                 detail::aligned16(c.p[result]);
    for (int d = 0; d < rows.rank; ++d) packs = packs && rows.str[1][d] % V == 0;
    const auto go = [&](const walk<K>& w, const std::int64_t* base) {
      if (packs) launch_rows<T, V>(c, make_strided(w, base), then, ctx);
      else launch_rows<T, 1>(c, make_strided(w, base), then, ctx);
    };
    const std::int64_t zero[K]{};
    each_piece(rows, zero, most_points / n, go);  // elements have 32-bit numbers
  }

  template <class T, int V, class Then>
  static void launch_rows(const call& c, const strided<2 + Then::operands>& rows, const Then& then, context& ctx) {
    const layout& table = c.l[0];
    const std::int64_t packs = table.ext[1] / V;
    detail::along_rows<Then::operands> follow{};
    for (int j = 0; j < Then::operands; ++j) follow.step[j] = epilogue_stride(c, j, c.l[result].rank - 1);
    launch(op_code::embedding, &detail::embedding_kernel<T, V, Then>, grid_for((rows.count * packs + 255) / 256, ctx), 256,
           ctx.stream, rows, fast_divisor(packs), static_cast<const T*>(c.p[0]), table.global[0], table.origin[0],
           table.ext[0], table.str[0], table.str[1], static_cast<const std::int32_t*>(c.p[1]), as<T>(c.p[result]),
           index_guard{ctx.fault, c.node}, then, follow);
  }
};

// --- adjoint of embedding -------------------------------------------------------------------------------------------

namespace detail {

inline constexpr int dw_threads = 128;  // a block's columns; each thread owns one, so additions need no order but its own
template <class T>
inline constexpr int dw_rows =
    static_cast<int>(32768 / (dw_threads * sizeof(computed_in<T>)));  // most rows that a block keeps

// A block owns a tile of the table's block, rows by columns, in shared memory, and reads all indices in their order, 128 at a
// time: those in its rows are compacted, then their rows are added. Deterministic, equal to the host's order. Price:
// each tile reads every index (tiles * indices * 4 bytes, from L2), and one row's hits are added one after another.
template <class T, class Then>
__global__ void __launch_bounds__(dw_threads)
    embedding_dw_kernel(const __grid_constant__ strided<2> places, const std::int32_t* index, const T* dy, std::int64_t step,
                        T* out, std::int64_t limit, std::int64_t block_row, std::int64_t table_rows, std::int64_t columns,
                        std::int64_t row_step, int tile_rows, unsigned column_tiles, const index_guard guard,
                        const Then then, const __grid_constant__ along_rows<Then::operands> across,
                        const __grid_constant__ along_rows<Then::operands> along) {
  constexpr int warps = dw_threads / warp_threads;
  using C = computed_in<T>;
  __shared__ C sums[dw_rows<T> * dw_threads];
  __shared__ std::int64_t hit_at[dw_threads];
  __shared__ int hit_row[dw_threads], warp_hits[warps];
  const int t = static_cast<int>(threadIdx.x), lane = t % warp_threads, warp = t / warp_threads;
  const std::int64_t first_row = std::int64_t{blockIdx.x / column_tiles} * tile_rows;
  const std::int64_t column = std::int64_t{blockIdx.x % column_tiles} * dw_threads + t;
  for (int r = 0; r < tile_rows; ++r) sums[r * dw_threads + t] = C(0);

  for (std::uint32_t first = 0; first < places.count; first += dw_threads) {
    const std::uint32_t place = first + threadIdx.x;
    std::int64_t at[2]{}, row = -1;
    if (place < places.count) {
      places.offsets(place, at);
      std::int64_t id = index[at[0]];
      if (id < 0 || id >= limit) id = blockIdx.x == 0 ? guard.checked(id, limit) : 0;
      row = id - block_row - first_row;
    }
    const bool hit = row >= 0 && row < tile_rows;
    const unsigned hits = __ballot_sync(0xFFFFFFFFU, hit);
    if (lane == 0) warp_hits[warp] = __popc(hits);
    __syncthreads();  // also: the last round's hits have been added
    int total = 0, before = 0;
    for (int w = 0; w < warps; ++w) {
      if (w < warp) before += warp_hits[w];
      total += warp_hits[w];
    }
    if (hit) {
      const int slot = before + __popc(hits & ((1U << lane) - 1U));
      hit_at[slot] = at[1];
      hit_row[slot] = static_cast<int>(row);
    }
    __syncthreads();
    if (column >= columns) continue;
    constexpr int batch = 8;  // loads in flight
    for (int h = 0; h < total; h += batch) {
      C v[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) v[j] = h + j < total ? static_cast<C>(dy[hit_at[h + j] + column * step]) : C(0);
#pragma unroll
      for (int j = 0; j < batch; ++j)
        if (h + j < total) sums[hit_row[h + j] * dw_threads + t] += v[j];
    }
  }
  if (column >= columns) return;
  for (int r = 0; r < tile_rows && first_row + r < table_rows; ++r) {
    std::int64_t off[Then::operands + 1];
#pragma unroll
    for (int j = 0; j < Then::operands; ++j) off[j] = (first_row + r) * across.step[j] + column * along.step[j];
    out[(first_row + r) * row_step + column] = then(static_cast<T>(sums[r * dw_threads + t]), off);
  }
}

}  // namespace detail

template <>
struct kernel<op_code::embedding_dw> {
  template <class T>
  static void run(const call& c, context& ctx) {
    add_rows<T>(c, no_epilogue{}, ctx);
  }
  template <class T, expression E>
  static void run_then(const call& c, context& ctx) {
    add_rows<T>(c, epilogue_of<T, E>(c), ctx);
  }

 private:
  // Without any index the table's blocks have nothing to add and write zeros, or what the expression makes of them.
  template <class T, class Then>
  static void add_rows(const call& c, const Then& then, context& ctx) {
    const layout &dy = c.l[0], &out = c.l[result];
    const layout* const both[2] = {&c.l[1], &dy};
    const walk<2> places = row_walk(both, c.l[1].rank);
    const std::int64_t rows = out.ext[0], columns = out.ext[1];
    if (out.numel() == 0) return;
    if (points(places) >= most_points) throw device_error("embedding_dw", "2^31 or more indices in one call");
    const std::int64_t tiles = (columns + detail::dw_threads - 1) / detail::dw_threads;
    // as many rows a block as leave enough blocks to fill a device
    std::int64_t tile_rows = (rows * tiles + device_scratch::reduction_blocks - 1) / device_scratch::reduction_blocks;
    if (tile_rows > detail::dw_rows<T>) tile_rows = detail::dw_rows<T>;
    const std::int64_t origin[2]{};
    detail::along_rows<Then::operands> across{}, along{};
    for (int j = 0; j < Then::operands; ++j) {
      across.step[j] = epilogue_stride(c, j, 0);
      along.step[j] = epilogue_stride(c, j, 1);
    }
    launch(op_code::embedding_dw, &detail::embedding_dw_kernel<T, Then>,
           static_cast<unsigned>((rows + tile_rows - 1) / tile_rows * tiles), detail::dw_threads, ctx.stream,
           make_strided(places, origin), static_cast<const std::int32_t*>(c.p[1]), static_cast<const T*>(c.p[0]),
           dy.str[dy.rank - 1], as<T>(c.p[result]), out.global[0], out.origin[0], rows, columns, out.str[0],
           static_cast<int>(tile_rows), static_cast<unsigned>(tiles), index_guard{ctx.fault, c.node}, then, across, along);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

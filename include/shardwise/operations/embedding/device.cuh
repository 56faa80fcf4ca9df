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

inline constexpr int dw_threads = 256, dw_warps = dw_threads / warp_threads;
inline constexpr int dw_looks = 8;                      // places that a thread looks at between two barriers
inline constexpr int dw_chunk = dw_threads * dw_looks;  // and a block
inline constexpr int dw_list = 2 * dw_chunk;            // most places that a block remembers
inline constexpr int dw_loads = 8;                      // rows of dy in flight
inline constexpr std::int64_t dw_tile_rows = 4096;      // most rows of a block

// What a block knows of the places whose indices name its rows, in the places' order.
struct dw_places {
  std::uint32_t place[dw_list];
  std::uint16_t row[dw_list];
  std::int64_t queue[dw_warps][2 * warp_threads];  // of a warp: where dy has the next rows that it adds
  int warp_hits[dw_warps];
};
// Rows [block_row + first_row, + rows) of a table of `limit`.
struct dw_tile {
  std::int64_t limit, block_row, first_row, rows;
};

__device__ inline int bits_below(unsigned mask, int lane) { return __popc(mask & ((1U << lane) - 1U)); }

// Lists the tile's places from `next` on, until there are no more or another chunk might not fit; how many there are is `total`. Gives
// the first place that was not looked at. All threads of the block call it.
__device__ inline std::uint32_t list_places(dw_places& known, int& total, const strided<2>& places,
                                            const std::int32_t* index, const dw_tile& tile, const index_guard& guard,
                                            std::uint32_t next) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads, warp = static_cast<int>(threadIdx.x) / warp_threads;
  total = 0;
  do {
    const std::uint32_t first = next + static_cast<std::uint32_t>(warp * warp_threads * dw_looks + lane);
    int row[dw_looks];
#pragma unroll
    for (int u = 0; u < dw_looks; ++u) {
      const std::uint32_t place = first + static_cast<std::uint32_t>(u * warp_threads);
      row[u] = -1;
      if (place >= places.count) continue;
      std::int64_t at[2];
      places.offsets(place, at);
      std::int64_t id = index[at[0]];
      if (id < 0 || id >= tile.limit) id = blockIdx.x == 0 ? guard.checked(id, tile.limit) : 0;
      const std::int64_t own = id - tile.block_row - tile.first_row;
      if (own >= 0 && own < tile.rows) row[u] = static_cast<int>(own);
    }
    unsigned mask[dw_looks];
    int hits = 0;
#pragma unroll
    for (int u = 0; u < dw_looks; ++u) {
      mask[u] = __ballot_sync(0xFFFFFFFFU, row[u] >= 0);
      hits += __popc(mask[u]);
    }
    if (lane == 0) known.warp_hits[warp] = hits;
    __syncthreads();  // also: what was listed before has been read
    int slot = total;
    for (int w = 0; w < dw_warps; ++w) {
      if (w < warp) slot += known.warp_hits[w];
      total += known.warp_hits[w];
    }
#pragma unroll
    for (int u = 0; u < dw_looks; ++u) {
      if (row[u] >= 0) {
        const int at = slot + bits_below(mask[u], lane);
        known.place[at] = first + static_cast<std::uint32_t>(u * warp_threads);
        known.row[at] = static_cast<std::uint16_t>(row[u]);
      }
      slot += __popc(mask[u]);
    }
    next = places.count - next > std::uint32_t{dw_chunk} ? next + dw_chunk : places.count;
    __syncthreads();
  } while (next < places.count && total <= dw_list - dw_chunk);
  return next;
}

// Adds to `sums` the packs of dy at the first n entries of a queue, in their order.
template <class T, int V>
__device__ void add_queued(computed_in<T> (&sums)[V], const std::int64_t* queue, int n, const T* dy) {
  for (int h = 0; h < n; h += dw_loads) {
    pack<T, V> x[dw_loads];
#pragma unroll
    for (int j = 0; j < dw_loads; ++j)
      if (h + j < n) x[j] = *reinterpret_cast<const pack<T, V>*>(dy + queue[h + j]);
#pragma unroll
    for (int j = 0; j < dw_loads; ++j)
      if (h + j < n)
#pragma unroll
        for (int v = 0; v < V; ++v) sums[v] += static_cast<computed_in<T>>(x[j].v[v]);
  }
}

// A block owns rows of the table's block and looks at all indices; a warp owns packs of one row's columns, which it keeps in registers
// while it adds what the row's places have there, and writes once: zeros where there is none. Deterministic, equal to the host's order.
// Price: each block reads every index (blocks * indices * 4 bytes, from L2), once if the tile has no more than dw_chunk places, else
// once for dw_warps packs of rows; and one row's places are added one after another.
template <class T, int V, class Then>
__global__ void __launch_bounds__(dw_threads)
    embedding_dw_kernel(const __grid_constant__ strided<2> places, const std::int32_t* index, const T* dy, std::int64_t step,
                        T* out, const __grid_constant__ dw_tile table, std::int64_t columns, std::int64_t row_step,
                        int tile_rows, int packs, unsigned column_blocks, const index_guard guard, const Then then,
                        const __grid_constant__ along_rows<Then::operands> across,
                        const __grid_constant__ along_rows<Then::operands> along) {
  using C = computed_in<T>;
  __shared__ dw_places known;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads, warp = static_cast<int>(threadIdx.x) / warp_threads;
  dw_tile tile = table;
  tile.first_row = std::int64_t{blockIdx.x / column_blocks} * tile_rows;
  tile.rows = table.rows - tile.first_row < tile_rows ? table.rows - tile.first_row : tile_rows;
  const std::int64_t first_pack = std::int64_t{blockIdx.x % column_blocks} * packs;  // of warp_threads * V columns
  const int items = static_cast<int>(tile.rows) * packs;
  std::int64_t* const queue = known.queue[warp];
  bool all = false;  // that there are is listed
  int total = 0;
  for (int round = 0; round * dw_warps < items; ++round) {
    const int item = round * dw_warps + warp, row = item / packs;
    const std::int64_t column = ((first_pack + item % packs) * warp_threads + lane) * V;
    const bool inside = item < items && column < columns;
    const T* const from = dy + column * step;
    C sums[V]{};
    int queued = 0;
    std::uint32_t next = all ? places.count : 0;
    do {
      if (!all) {
        const std::uint32_t begin = next;
        next = list_places(known, total, places, index, tile, guard, begin);
        all = begin == 0 && next == places.count;
      }
      for (int g = 0; item < items && g < total; g += warp_threads) {
        const bool mine = g + lane < total && known.row[g + lane] == row;
        const unsigned mask = __ballot_sync(0xFFFFFFFFU, mine);
        if (mine) {
          std::int64_t at[2];
          places.offsets(known.place[g + lane], at);
          queue[queued + bits_below(mask, lane)] = at[1];
        }
        queued += __popc(mask);
        __syncwarp();
        if (queued < warp_threads) continue;
        if (inside) add_queued<T, V>(sums, queue, warp_threads, from);
        const std::int64_t rest = queue[warp_threads + lane];
        __syncwarp();
        queue[lane] = rest;
        queued -= warp_threads;
        __syncwarp();
      }
    } while (next < places.count);
    if (inside) {
      add_queued<T, V>(sums, queue, queued, from);
      pack<T, V> x;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        std::int64_t off[Then::operands + 1];
#pragma unroll
        for (int j = 0; j < Then::operands; ++j)
          off[j] = (tile.first_row + row) * across.step[j] + (column + v) * along.step[j];
        x.v[v] = then(static_cast<T>(sums[v]), off);
      }
      *reinterpret_cast<pack<T, V>*>(out + (tile.first_row + row) * row_step + column) = x;
    }
    __syncwarp();  // the queue is used again
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
    const std::int64_t columns = out.ext[1];
    if (out.numel() == 0) return;
    if (points(places) >= most_points) throw device_error("embedding_dw", "2^31 or more indices in one call");
    constexpr int V = vector_of<T>;
    bool packs = columns % V == 0 && dy.str[dy.rank - 1] == 1 && out.str[0] % V == 0 && detail::aligned16(c.p[0]) &&
                 detail::aligned16(c.p[result]);
    for (int d = 0; d < places.rank; ++d) packs = packs && places.str[1][d] % V == 0;
    if (packs) launch_tiles<T, V>(c, places, then, ctx);
    else launch_tiles<T, 1>(c, places, then, ctx);
  }

  template <class T, int V, class Then>
  static void launch_tiles(const call& c, const walk<2>& places, const Then& then, context& ctx) {
    const layout &dy = c.l[0], &out = c.l[result];
    const std::int64_t rows = out.ext[0], columns = out.ext[1], wanted = device_scratch::reduction_blocks;
    const auto parts = [](std::int64_t n, std::int64_t each) { return (n + each - 1) / each; };
    // as many rows a block as leave enough blocks to fill a device, or else columns, too
    std::int64_t tile_rows = parts(rows, wanted);
    if (tile_rows > detail::dw_tile_rows) tile_rows = detail::dw_tile_rows;
    const std::int64_t tiles = parts(rows, tile_rows), all_packs = parts(columns, warp_threads * V);
    const std::int64_t most = wanted / tiles > 1 ? wanted / tiles : 1;
    const std::int64_t packs = parts(all_packs, most < all_packs ? most : all_packs),
                       column_blocks = parts(all_packs, packs);
    const std::int64_t origin[2]{};
    detail::along_rows<Then::operands> across{}, along{};
    for (int j = 0; j < Then::operands; ++j) {
      across.step[j] = epilogue_stride(c, j, 0);
      along.step[j] = epilogue_stride(c, j, 1);
    }
    launch(op_code::embedding_dw, &detail::embedding_dw_kernel<T, V, Then>, static_cast<unsigned>(tiles * column_blocks),
           detail::dw_threads, ctx.stream, make_strided(places, origin), static_cast<const std::int32_t*>(c.p[1]),
           static_cast<const T*>(c.p[0]), dy.str[dy.rank - 1], as<T>(c.p[result]),
           detail::dw_tile{out.global[0], out.origin[0], 0, rows}, columns, out.str[0], static_cast<int>(tile_rows),
           static_cast<int>(packs), static_cast<unsigned>(column_blocks), index_guard{ctx.fault, c.node}, then, across,
           along);
  }
};

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// What the kernels for double are made of: a thread keeps a rectangle of scores and one of results in registers, and reads
// shared memory 16 bytes at a time, so that most of what it issues are multiply-adds. Price: heads of up to 128 numbers.
#pragma once

#include <cuda_pipeline.h>
#include <shardwise/operations/attention/device_tiles.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// A block of Y by X threads has a tile of Queries by Keys scores, of heads of up to Size. Of scores, thread (y, x) has rows y + Y r
// and columns x + X c; of results the columns of each X-th vector of 16 bytes.
template <class C, int Size, int Queries, int Keys, int Y, int X = 16>
struct tiling {
  static constexpr int size = Size, queries = Queries, keys = Keys, y = Y, x = X, threads = X * Y;
  static constexpr int wide = 16 / static_cast<int>(sizeof(C));
  static constexpr int rows = Queries / Y, columns = Keys / X;   // of scores
  static constexpr int key_rows = Keys / Y, numbers = Size / X;  // of results
  static constexpr int stride = Size + wide, weight_stride = Keys + wide;
  static_assert(Queries % Y == 0 && Keys % X == 0 && Keys % (Y * wide) == 0 && Size % (X * wide) == 0 && 32 % X == 0);

  // Of shared memory, with `of_queries` tiles of rows of queries, `of_keys` of keys, and so many of weights.
  static constexpr int bytes(int of_queries, int of_keys, int weights) {
    return static_cast<int>(sizeof(C)) *
           (of_queries * Queries * stride + of_keys * Keys * stride + weights * Queries * weight_stride);
  }
};

template <class C>
struct alignas(16) numbers_16 {
  static constexpr int count = 16 / static_cast<int>(sizeof(C));
  C v[count];
};
template <class C>
__device__ numbers_16<C> read_16(const C* from) {
  return *reinterpret_cast<const numbers_16<C>*>(from);
}

// Whether the rows of a block can be moved 16 bytes at a time.
template <class C>
__device__ bool is_whole(const host::attention_block<C>& x, int size) {
  return size % numbers_16<C>::count == 0 && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
}

// Begins to copy rows [first, first + Rows) of a head to shared memory, zeros from `end` on and behind `size`.
template <int Rows, class Tile, class C>
__device__ void fetch(C* to, const host::attention_block<const C>& x, std::int64_t b, std::int64_t h, std::int64_t first,
                      std::int64_t end, int size) {
  constexpr int each = Tile::size / Tile::wide, bytes = static_cast<int>(sizeof(C));
  const C* const from = x.at(b, h, first);
  const int rows = end - first < Rows ? static_cast<int>(end - first) : Rows;
  const bool whole = is_whole(x, size);
  for (int i = static_cast<int>(threadIdx.x); i < Rows * each; i += Tile::threads) {
    const int row = i / each, c = i % each * Tile::wide;
    C* const at = to + row * Tile::stride + c;
    if (whole) {
      const bool there = row < rows && c < size;
      __pipeline_memcpy_async(at, there ? from + row * x.time + c : x.data, 16, there ? 0 : 16);
    } else {
      for (int e = 0; e < Tile::wide; ++e) {
        const bool there = row < rows && c + e < size;
        __pipeline_memcpy_async(at + e, there ? from + row * x.time + c + e : x.data, bytes, there ? 0 : bytes);
      }
    }
  }
}
__device__ inline void await_copies() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

// s(row, column) = sum of a(row, i) b(column, i), of rows in shared memory.
template <class Tile, class C>
__device__ void multiply_tiles(C (&s)[Tile::rows][Tile::columns], const C* a, const C* b, int size, int ty, int tx) {
#pragma unroll
  for (int r = 0; r < Tile::rows; ++r)
#pragma unroll
    for (int c = 0; c < Tile::columns; ++c) s[r][c] = C(0);
  a += ty * Tile::stride;
  b += tx * Tile::stride;
#pragma unroll 2
  for (int i = 0; i < size; i += Tile::wide) {
    numbers_16<C> of[Tile::rows];
#pragma unroll
    for (int r = 0; r < Tile::rows; ++r) of[r] = read_16(a + r * Tile::y * Tile::stride + i);
#pragma unroll
    for (int c = 0; c < Tile::columns; ++c) {
      const numbers_16<C> with = read_16(b + c * Tile::x * Tile::stride + i);
#pragma unroll
      for (int r = 0; r < Tile::rows; ++r)
#pragma unroll
        for (int e = 0; e < Tile::wide; ++e) s[r][c] += of[r].v[e] * with.v[e];
    }
  }
}

// out(row, .) += factor y(.), of the thread's columns of a row of a tile.
template <class Tile, class C>
__device__ void add_row(C (&out)[Tile::numbers], C factor, const numbers_16<C> (&y)[Tile::numbers / Tile::wide]) {
#pragma unroll
  for (int c = 0; c < Tile::numbers; ++c) out[c] += factor * y[c / Tile::wide].v[c % Tile::wide];
}
template <class Tile, class C>
__device__ void read_row(numbers_16<C> (&to)[Tile::numbers / Tile::wide], const C* y, int row, int tx) {
#pragma unroll
  for (int c = 0; c < Tile::numbers / Tile::wide; ++c)
    to[c] = read_16(y + row * Tile::stride + (c * Tile::x + tx) * Tile::wide);
}

// The row of a result's tile that is the thread's r-th: of queries as of scores, of keys by vectors.
template <class Tile, bool OfKeys>
__device__ constexpr int result_row(int r, int ty) {
  return OfKeys ? (r / Tile::wide * Tile::y + ty) * Tile::wide + r % Tile::wide : ty + Tile::y * r;
}

// out(query, .) += sum over keys of w(query, key) y(key, .); of keys out(key, .) += sum over queries of w(query, key) y(query, .).
template <class Tile, bool OfKeys, int Rows, class C>
__device__ void add_weighted_tile(C (&out)[Rows][Tile::numbers], const C* w, const C* y, int ty, int tx) {
  constexpr int wide = Tile::wide;
  numbers_16<C> row[Tile::numbers / wide];
  if constexpr (OfKeys) {
#pragma unroll 4
    for (int k = 0; k < Tile::queries; ++k) {
      read_row<Tile>(row, y, k, tx);
#pragma unroll
      for (int r = 0; r < Rows; r += wide) {
        const numbers_16<C> of = read_16(w + k * Tile::weight_stride + result_row<Tile, true>(r, ty));
#pragma unroll
        for (int e = 0; e < wide; ++e) add_row<Tile>(out[r + e], of.v[e], row);
      }
    }
  } else {
#pragma unroll 2
    for (int k = 0; k < Tile::keys; k += wide) {
      numbers_16<C> of[Rows];
#pragma unroll
      for (int r = 0; r < Rows; ++r) of[r] = read_16(w + result_row<Tile, false>(r, ty) * Tile::weight_stride + k);
#pragma unroll
      for (int e = 0; e < wide; ++e) {
        read_row<Tile>(row, y, k + e, tx);
#pragma unroll
        for (int r = 0; r < Rows; ++r) add_row<Tile>(out[r], of[r].v[e], row);
      }
    }
  }
}
// The same, where weights that are 0 take nothing of y, whatever it holds.
template <class Tile, bool OfKeys, int Rows, class C>
__device__ void add_weighted_tile_carefully(C (&out)[Rows][Tile::numbers], const C* w, const C* y, int ty, int tx) {
  numbers_16<C> row[Tile::numbers / Tile::wide];
#pragma unroll 1
  for (int k = 0; k < (OfKeys ? Tile::queries : Tile::keys); ++k) {
    read_row<Tile>(row, y, k, tx);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const int at = result_row<Tile, OfKeys>(r, ty);
      const C of = OfKeys ? w[k * Tile::weight_stride + at] : w[at * Tile::weight_stride + k];
      if (of != C(0)) add_row<Tile>(out[r], of, row);
    }
  }
}
template <class Tile, bool OfKeys, int Rows, class C>
__device__ void add_weighted_tile(bool careful, C (&out)[Rows][Tile::numbers], const C* w, const C* y, int ty, int tx) {
  if (careful) add_weighted_tile_carefully<Tile, OfKeys>(out, w, y, ty, tx);
  else add_weighted_tile<Tile, OfKeys>(out, w, y, ty, tx);
}

template <int Rows, int Numbers, class C>
__device__ void clear(C (&v)[Rows][Numbers]) {
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int c = 0; c < Numbers; ++c) v[r][c] = C(0);
}
// Law: 0 times what is not finite is no number, and what that is added to stays none. So kernels multiply by weights that are 0, look
// at their results, and go once more, carefully, where these have a number that is none.
template <int Rows, int Numbers, class C>
__device__ bool has_none(const C (&v)[Rows][Numbers]) {
  bool none = false;
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int c = 0; c < Numbers; ++c) none = none || v[r][c] != v[r][c];
  return none;
}

template <class Tile, bool OfKeys, int Rows, class C>
__device__ void store_tile(const host::attention_block<C>& to, std::int64_t b, std::int64_t h, std::int64_t first,
                           std::int64_t end, const C (&v)[Rows][Tile::numbers], int size, int ty, int tx) {
  const bool whole = is_whole(to, size);
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    const std::int64_t t = first + result_row<Tile, OfKeys>(r, ty);
    if (t >= end) continue;
    C* const row = to.at(b, h, t);
#pragma unroll
    for (int c = 0; c < Tile::numbers; c += Tile::wide) {
      const int column = (c / Tile::wide * Tile::x + tx) * Tile::wide;
      numbers_16<C> all;
#pragma unroll
      for (int e = 0; e < Tile::wide; ++e) all.v[e] = v[r][c + e];
      if (whole && column < size) *reinterpret_cast<numbers_16<C>*>(row + column) = all;
#pragma unroll
      for (int e = 0; e < Tile::wide; ++e)
        if (!whole && column + e < size) row[column + e] = all.v[e];
    }
  }
}

// Of the keys of a tile those that a query may see by its place: [first, end), counted from the tile's first.
struct seen_columns {
  int first = 0, end = 0;

  template <class C>
  __device__ seen_columns(const host::attention_call<C, C>& x, std::int64_t i, std::int64_t first_key, int keys) {
    if (i >= x.queries) return;
    const auto within = [&](std::int64_t j) {
      return static_cast<int>(j < first_key ? 0 : j - first_key < keys ? j - first_key : keys);
    };
    first = within(x.first_key(i));
    end = within(x.end_key(i));
  }
  __device__ bool holds(int column) const { return column >= first && column < end; }
};
// Whether all queries of a tile see all its keys.
template <class Tile, class C>
__device__ bool sees_all(const host::attention_call<C, C>& x, std::int64_t first_query, std::int64_t first_key) {
  return first_query + Tile::queries <= x.queries && first_key + Tile::keys <= x.end_key(first_query) &&
         first_key >= x.first_key(first_query + Tile::queries - 1);
}
// Whether a weight depends on nothing but the query's and the key's places.
template <class C>
__device__ bool is_plain(const host::attention_call<C, C>& x) {
  return !x.bias && !x.is_marked() && !x.key;
}

// The block's tile: of all heads' those with most keys (or queries) first, since blocks begin in their order.
struct ordered_place {
  std::int64_t b, h, first;
  __device__ ordered_place(std::int64_t batch, std::int64_t heads, std::int64_t tiles, int rows, bool from_last) {
    const std::int64_t n = blockIdx.x, tile = n / (batch * heads);
    first = (from_last ? tiles - 1 - tile : tile) * rows;
    h = n % heads;
    b = n / heads % batch;
  }
};

// What these kernels take; the others take the rest.
inline bool fits_registers(const host::attention_call<double>& x) { return x.size <= 128 && x.value_size <= 128; }

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Blocks of a strided matrix as rows of whole vectors, which is how the tiles of a host matrix product read them.
#pragma once

#include <shardwise/runtime/host/gemm_tile.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {
namespace gemm_detail {

// Transposes a strip of columns of unit-stride rows: to[i, j] = from[j, i] for every j in the strip. No loop over the
// block's sides: -O2 would keep such a loop and the block in memory. One function per vector width, because compilers
// split a vector wider than the function's target allows.
template <class T>
using strip_fn = void (*)(const T* from, long col, long rows, T* to, long width);

template <class T>
void strip_rest(const T* from, long col, long first, long rows, T* to, long width, long strip) {
  for (long i = first; i < rows; ++i) {
    for (long j = 0; j < strip; ++j) to[i * width + j] = from[i + j * col];
  }
}

template <class T>
void strip_generic(const T* from, long col, long rows, T* to, long width) {
  using vec = typename vector_of<T, 16>::type;
  constexpr long side = 16 / long{sizeof(T)};
  long i = 0;
  for (; i + side <= rows; i += side) {
    const T* const at = from + i;
    T* const out = to + i * width;
    vec x0, x1;
    __builtin_memcpy(&x0, at, 16);
    __builtin_memcpy(&x1, at + col, 16);
    if constexpr (side == 4) {
      vec x2, x3;
      __builtin_memcpy(&x2, at + 2 * col, 16);
      __builtin_memcpy(&x3, at + 3 * col, 16);
      const vec a = __builtin_shufflevector(x0, x1, 0, 4, 1, 5), b = __builtin_shufflevector(x2, x3, 0, 4, 1, 5);
      const vec c = __builtin_shufflevector(x0, x1, 2, 6, 3, 7), d = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
      x0 = __builtin_shufflevector(a, b, 0, 1, 4, 5);
      x1 = __builtin_shufflevector(a, b, 2, 3, 6, 7);
      x2 = __builtin_shufflevector(c, d, 0, 1, 4, 5);
      x3 = __builtin_shufflevector(c, d, 2, 3, 6, 7);
      __builtin_memcpy(out + 2 * width, &x2, 16);
      __builtin_memcpy(out + 3 * width, &x3, 16);
    } else {
      const vec a = __builtin_shufflevector(x0, x1, 0, 2);
      x1 = __builtin_shufflevector(x0, x1, 1, 3);
      x0 = a;
    }
    __builtin_memcpy(out, &x0, 16);
    __builtin_memcpy(out + width, &x1, 16);
  }
  strip_rest(from, col, i, rows, to, width, side);
}

#if defined(__x86_64__)
// Two blocks of 16-byte rows side by side: the upper half of each vector holds the second half of the strip.
template <class T>
__attribute__((target("avx2"))) void strip_avx2(const T* from, long col, long rows, T* to, long width) {
  using vec = typename vector_of<T, 32>::type;
  using half = typename vector_of<T, 16>::type;
  constexpr long side = 16 / long{sizeof(T)};
  long i = 0;
  for (; i + side <= rows; i += side) {
    const T* const at = from + i;
    T* const out = to + i * width;
    half h0, h1, h2, h3;
    __builtin_memcpy(&h0, at, 16);
    __builtin_memcpy(&h1, at + col, 16);
    __builtin_memcpy(&h2, at + 2 * col, 16);
    __builtin_memcpy(&h3, at + 3 * col, 16);
    if constexpr (side == 4) {
      half h4, h5, h6, h7;
      __builtin_memcpy(&h4, at + 4 * col, 16);
      __builtin_memcpy(&h5, at + 5 * col, 16);
      __builtin_memcpy(&h6, at + 6 * col, 16);
      __builtin_memcpy(&h7, at + 7 * col, 16);
      vec x0 = __builtin_shufflevector(h0, h4, 0, 1, 2, 3, 4, 5, 6, 7);
      vec x1 = __builtin_shufflevector(h1, h5, 0, 1, 2, 3, 4, 5, 6, 7);
      vec x2 = __builtin_shufflevector(h2, h6, 0, 1, 2, 3, 4, 5, 6, 7);
      vec x3 = __builtin_shufflevector(h3, h7, 0, 1, 2, 3, 4, 5, 6, 7);
      const vec a = __builtin_shufflevector(x0, x1, 0, 8, 1, 9, 4, 12, 5, 13);
      const vec b = __builtin_shufflevector(x2, x3, 0, 8, 1, 9, 4, 12, 5, 13);
      const vec c = __builtin_shufflevector(x0, x1, 2, 10, 3, 11, 6, 14, 7, 15);
      const vec d = __builtin_shufflevector(x2, x3, 2, 10, 3, 11, 6, 14, 7, 15);
      x0 = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      x1 = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
      x2 = __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13);
      x3 = __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15);
      __builtin_memcpy(out, &x0, 32);
      __builtin_memcpy(out + width, &x1, 32);
      __builtin_memcpy(out + 2 * width, &x2, 32);
      __builtin_memcpy(out + 3 * width, &x3, 32);
    } else {
      const vec x0 = __builtin_shufflevector(h0, h2, 0, 1, 2, 3);
      const vec x1 = __builtin_shufflevector(h1, h3, 0, 1, 2, 3);
      const vec a = __builtin_shufflevector(x0, x1, 0, 4, 2, 6);
      const vec b = __builtin_shufflevector(x0, x1, 1, 5, 3, 7);
      __builtin_memcpy(out, &a, 32);
      __builtin_memcpy(out + width, &b, 32);
    }
  }
  strip_rest(from, col, i, rows, to, width, 2 * side);
}
#endif

template <class T>
struct tile_set {
  struct height {
    long rows;
    tile_fn<T> wide, narrow;  // two vectors and one
  };
  long vector_bytes;
  strip_fn<T> transpose_strip;
  long strip_bytes;
  height heights[5];  // falling; ends with one row

  constexpr const height& fit(long rows) const {
    const height* h = heights;
    while (h->rows > rows) ++h;
    return *h;
  }
};

template <class T>
inline constexpr tile_set<T> generic_tiles{16,
                                           strip_generic<T>,
                                           16,
                                           {{4, tile_generic<T, 4, 2>, tile_generic<T, 4, 1>},
                                            {2, tile_generic<T, 2, 2>, tile_generic<T, 2, 1>},
                                            {1, tile_generic<T, 1, 2>, tile_generic<T, 1, 1>}}};
#if defined(__x86_64__)
template <class T>
inline constexpr tile_set<T> avx2_tiles{32,
                                        strip_avx2<T>,
                                        32,
                                        {{6, tile_avx2<T, 6, 2>, tile_avx2<T, 6, 1>},
                                         {4, tile_avx2<T, 4, 2>, tile_avx2<T, 4, 1>},
                                         {2, tile_avx2<T, 2, 2>, tile_avx2<T, 2, 1>},
                                         {1, tile_avx2<T, 1, 2>, tile_avx2<T, 1, 1>}}};
template <class T>
inline constexpr tile_set<T> avx512_tiles{64,
                                          strip_avx2<T>,
                                          32,
                                          {{12, tile_avx512<T, 12, 2>, tile_avx512<T, 12, 1>},
                                           {8, tile_avx512<T, 8, 2>, tile_avx512<T, 8, 1>},
                                           {4, tile_avx512<T, 4, 2>, tile_avx512<T, 4, 1>},
                                           {2, tile_avx512<T, 2, 2>, tile_avx512<T, 2, 1>},
                                           {1, tile_avx512<T, 1, 2>, tile_avx512<T, 1, 1>}}};
#endif

template <class T>
const tile_set<T>& tiles([[maybe_unused]] isa level) {
#if defined(__x86_64__)
  if (level == isa::avx512) return avx512_tiles<T>;
  if (level == isa::avx2) return avx2_tiles<T>;
#endif
  return generic_tiles<T>;
}

// Copies [rows, cols] of a strided matrix to rows of `width`, zeros behind the last column.
template <class T>
void pack(const tile_set<T>& set, const T* from, long row, long col, long rows, long cols, T* to, long width) {
  long done = 0;
  if (col == 1 && cols > 64) {
    for (long i = 0; i < rows; ++i) {
      __builtin_memcpy(to + i * width, from + i * row, static_cast<std::size_t>(cols) * sizeof(T));
    }
    done = cols;
  } else if (col == 1) {  // a call of memcpy costs more than so short a row; what lies rows apart no processor foresees
    constexpr long side = 16 / long{sizeof(T)}, ahead = 16;
    done = cols / side * side;
    for (long i = 0; i < rows; ++i) {
      __builtin_prefetch(from + (i + ahead) * row);
      __builtin_prefetch(from + (i + ahead) * row + cols - 1);
      for (long j = 0; j < done; j += side) __builtin_memcpy(to + i * width + j, from + i * row + j, 16);
    }
  } else if (row == 1) {
    const long strip = set.strip_bytes / long{sizeof(T)};
    for (; done + strip <= cols; done += strip) set.transpose_strip(from + done * col, col, rows, to + done, width);
  }
  if (done == width) return;
  for (long i = 0; i < rows; ++i) {
    for (long j = done; j < cols; ++j) to[i * width + j] = from[i * row + j * col];
    for (long j = cols; j < width; ++j) to[i * width + j] = T{};
  }
}

}  // namespace gemm_detail
}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

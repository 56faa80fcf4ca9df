// SPDX-License-Identifier: Apache-2.0
// Host matrix product: one thread, one tile kernel per instruction set, chosen at run time, scratch from the caller.
#pragma once

#include <cstddef>
#include <type_traits>

#include <shardwise/runtime/host/isa.hpp>

// The law. An element's bits depend on its row of A, its column of B, its old value, alpha, beta, k and the
// instruction set: every tile adds its products in order of k and every block of k begins where k alone says. Hence
// equal calls give equal bits, a row does not depend on m, a column does not depend on n, and strides do not matter:
// the product of a shard is the shard of the product. (On x86-64. Elsewhere the compiler decides what it fuses.)
namespace shardwise::host {

template <class T>
struct matrix_view {
  T* data;
  long row, col;  // strides in elements; zero repeats, so only where the matrix is read

  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) constexpr operator matrix_view<U>() const {
    return {data, row, col};
  }
};

namespace gemm_detail {

inline constexpr long max_rows = 12;       // the tallest tile of any instruction set
inline constexpr long depth_bytes = 2048;  // deep blocks: each further block reads and writes all of C once more
inline constexpr long max_height = 96;     // rows of A between two passes over B; a multiple of every tile height
inline constexpr long width_bytes = 2048;  // columns of B packed at once
inline constexpr long row_gap = 16;        // keeps the rows of a packed A block out of one cache set
inline constexpr long widest_bytes = 128;

constexpr long round_up(long x, long to) { return (x + to - 1) / to * to; }
constexpr long smaller(long x, long y) { return x < y ? x : y; }

// Depth of the blocks that k is cut into: a function of k alone, see the law.
template <class T>
constexpr long depth_of(long k) {
  constexpr long max_depth = depth_bytes / long{sizeof(T)};
  const long blocks = (k + max_depth - 1) / max_depth;
  return blocks < 2 ? k : round_up((k + blocks - 1) / blocks, 8);
}

template <class T>
inline constexpr long max_width = width_bytes / long{sizeof(T)};

template <class T>
constexpr long packed_b(long n, long k) {
  return smaller(round_up(n, widest_bytes / long{sizeof(T)}), max_width<T>) * depth_of<T>(k);
}

template <class T>
constexpr long packed_a(long m, long k) {
  return smaller(m, max_height) * (depth_of<T>(k) + row_gap);
}

// One tile: C[rows, V vectors] = alpha * A B + beta * C. A is read through two strides and B as rows of whole vectors.
// Strides are in elements. keep == false must not read C.
template <class T>
using tile_fn = void (*)(long k, const T* a, long a_row, long a_col, const T* b, long b_row, T alpha, T beta, bool keep,
                         T* c, long c_row);

template <class T, int Bytes>
struct vector_of {
  typedef T type __attribute__((vector_size(Bytes)));
};

// Compilers contract, fold and unroll differently at each level. Spelling out the rows and the two instructions that
// matter gives the same loop at -O1 and above from g++, clang and nvcc's host pass, and fixes the rounding.
#define SHARDWISE_GEMM_ROWS(X) \
  X(0, p0)                     \
  X(1, p0 + rs)                \
  X(2, p0 + 2 * rs)            \
  X(3, p0 + rs3)               \
  X(4, p1) X(5, p1 + rs) X(6, p1 + 2 * rs) X(7, p1 + rs3) X(8, p2) X(9, p2 + rs) X(10, p2 + 2 * rs) X(11, p2 + rs3)

#define SHARDWISE_GEMM_ZERO(r, p)                           \
  if constexpr (R > r) {                                    \
    acc[r * V] = vec{};                                     \
    acc[r * V + V - 1] = vec{};                             \
    __builtin_prefetch(c + r * c_row, 1);                   \
    __builtin_prefetch(c + r * c_row + (V - 1) * lanes, 1); \
  }

#define SHARDWISE_GEMM_STEP(r, p)                                   \
  if constexpr (R > r) {                                            \
    vec x;                                                          \
    SHARDWISE_GEMM_SPLAT(x, *reinterpret_cast<const T*>(p));        \
    SHARDWISE_GEMM_FMA(acc[r * V], x, b0);                          \
    if constexpr (V > 1) SHARDWISE_GEMM_FMA(acc[r * V + 1], x, b1); \
  }

#define SHARDWISE_GEMM_PUT(r, v)              \
  {                                           \
    T* const to = c + r * c_row + (v)*lanes;  \
    vec sum = acc[r * V + (v)] * scale;       \
    SHARDWISE_GEMM_ROUND(sum);                \
    if (keep) {                               \
      vec old;                                \
      __builtin_memcpy(&old, to, sizeof old); \
      SHARDWISE_GEMM_FMA(sum, factor, old);   \
    }                                         \
    __builtin_memcpy(to, &sum, sizeof sum);   \
  }

#define SHARDWISE_GEMM_STORE(r, p)                    \
  if constexpr (R > r) {                              \
    SHARDWISE_GEMM_PUT(r, 0)                          \
    if constexpr (V > 1) SHARDWISE_GEMM_PUT(r, V - 1) \
  }

#define SHARDWISE_GEMM_TILE(name, bytes, ...)                                                                \
  template <class T, int R, int V>                                                                           \
  __VA_ARGS__ void name(long k, const T* a, long a_row, long a_col, const T* b, long b_row, T alpha, T beta, \
                        bool keep, T* c, long c_row) {                                                       \
    static_assert(R <= 12 && (V == 1 || V == 2));                                                            \
    using vec = typename vector_of<T, bytes>::type;                                                          \
    constexpr long lanes = bytes / long{sizeof(T)};                                                          \
    vec acc[std::size_t{R} * std::size_t{V}];                                                                \
    const long rs = a_row * long{sizeof(T)}, rs3 = 3 * rs, ks = a_col * long{sizeof(T)};                     \
    const char* p0 = reinterpret_cast<const char*>(a);                                                       \
    const char* p1 = p0 + (R > 4 ? 4 * rs : 0);                                                              \
    const char* p2 = p0 + (R > 8 ? 8 * rs : 0);                                                              \
    SHARDWISE_GEMM_ROWS(SHARDWISE_GEMM_ZERO)                                                                 \
    for (; k > 0; --k) {                                                                                     \
      vec b0, b1;                                                                                            \
      __builtin_memcpy(&b0, b, sizeof b0);                                                                   \
      __builtin_memcpy(&b1, b + (V - 1) * lanes, sizeof b1);                                                 \
      SHARDWISE_GEMM_ROWS(SHARDWISE_GEMM_STEP)                                                               \
      b += b_row;                                                                                            \
      p0 += ks;                                                                                              \
      if constexpr (R > 4) p1 += ks;                                                                         \
      if constexpr (R > 8) p2 += ks;                                                                         \
      SHARDWISE_GEMM_OPAQUE(p0, p1, p2);                                                                     \
    }                                                                                                        \
    vec scale, factor;                                                                                       \
    SHARDWISE_GEMM_SPLAT(scale, alpha);                                                                      \
    SHARDWISE_GEMM_SPLAT(factor, beta);                                                                      \
    SHARDWISE_GEMM_ROWS(SHARDWISE_GEMM_STORE)                                                                \
  }

// Three pointers and one stride address twelve rows; without this line a compiler may carry twelve pointers instead.
#define SHARDWISE_GEMM_OPAQUE(p0, p1, p2) asm("" : "+r"(p0), "+r"(p1), "+r"(p2))

#if defined(__x86_64__)
#define SHARDWISE_GEMM_SPLAT(x, value)                          \
  if constexpr (sizeof(T) == 4)                                 \
    asm("vbroadcastss {%1, %0|%0, %1}" : "=v"(x) : "m"(value)); \
  else                                                          \
    asm("vbroadcastsd {%1, %0|%0, %1}" : "=v"(x) : "m"(value))
#define SHARDWISE_GEMM_FMA(sum, x, y)                                          \
  {                                                                            \
    if constexpr (sizeof(T) == 4)                                              \
      asm("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(x), "v"(y)); \
    else                                                                       \
      asm("vfmadd231pd {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(x), "v"(y)); \
  }
#define SHARDWISE_GEMM_ROUND(x)
SHARDWISE_GEMM_TILE(tile_avx512, 64, __attribute__((target("avx512f"))))
SHARDWISE_GEMM_TILE(tile_avx2, 32, __attribute__((target("avx2,fma"))))
#undef SHARDWISE_GEMM_SPLAT
#undef SHARDWISE_GEMM_FMA
#undef SHARDWISE_GEMM_ROUND
#endif

// x - 0 is x for every x, so the subtraction folds away.
#define SHARDWISE_GEMM_SPLAT(x, value) \
  x = (value)-vec {}
#if defined(__x86_64__)
// Under -march=native a compiler would fuse here, in some tiles and not in others.
#define SHARDWISE_GEMM_ROUND(x) asm("" : "+x"(x))
#define SHARDWISE_GEMM_FMA(sum, x, y) \
  {                                   \
    vec product = x * y;              \
    SHARDWISE_GEMM_ROUND(product);    \
    sum += product;                   \
  }
#else
#define SHARDWISE_GEMM_ROUND(x) asm("" : "+m"(x))
#define SHARDWISE_GEMM_FMA(sum, x, y) sum += x * y
#endif
SHARDWISE_GEMM_TILE(tile_generic, 16)
#undef SHARDWISE_GEMM_SPLAT
#undef SHARDWISE_GEMM_FMA
#undef SHARDWISE_GEMM_ROUND
#undef SHARDWISE_GEMM_OPAQUE
#undef SHARDWISE_GEMM_TILE
#undef SHARDWISE_GEMM_STORE
#undef SHARDWISE_GEMM_PUT
#undef SHARDWISE_GEMM_STEP
#undef SHARDWISE_GEMM_ZERO
#undef SHARDWISE_GEMM_ROWS

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
  } else if (col == 1) {  // a call of memcpy costs more than so short a row
    constexpr long side = 16 / long{sizeof(T)};
    done = cols / side * side;
    for (long i = 0; i < rows; ++i) {
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

// Tiles that end inside a vector or land on strided columns go through a copy, by the same kernel: the same bits.
template <class T>
void tile_by_copy(tile_fn<T> kernel, long rows, long cols, long k, const T* a, long a_row, long a_col, const T* b,
                  long b_row, T alpha, T beta, bool keep, matrix_view<T> c) {
  constexpr long width = widest_bytes / long{sizeof(T)};
  alignas(64) T copy[static_cast<std::size_t>(max_rows * width)];
  if (keep) {
    for (long i = 0; i < rows; ++i) {
      for (long j = 0; j < width; ++j) copy[i * width + j] = j < cols ? c.data[i * c.row + j * c.col] : T{};
    }
  }
  kernel(k, a, a_row, a_col, b, b_row, alpha, beta, keep, copy, width);
  for (long i = 0; i < rows; ++i) {
    for (long j = 0; j < cols; ++j) c.data[i * c.row + j * c.col] = copy[i * width + j];
  }
}

template <class T>
void multiply(const tile_set<T>& set, long m, long n, long k, T alpha, matrix_view<const T> a, matrix_view<const T> b,
              T beta, matrix_view<T> c, T* workspace) {
  const long lanes = set.vector_bytes / long{sizeof(T)}, width = 2 * lanes, depth = depth_of<T>(k);
  T* const b_space = workspace;
  T* const a_space = workspace + packed_b<T>(n, k);
  // The tiles read A through strides at full speed, except where a multiple of a page lies between its rows or columns:
  // those share few cache sets, and a copy pays once enough tiles of columns reuse it. (30% with tiles of six rows;
  // with twelve it may cost 2% where a set has twelve ways.) B in place pays while few rows reuse it.
  const auto pages_apart = [](long stride) { return stride != 0 && stride * long{sizeof(T)} % 4096 == 0; };
  const bool copy_rows = n > 2 * width && a.col == 1 && pages_apart(a.row);
  const bool copy_cols = n > 2 * width && a.row == 1 && pages_apart(a.col);
  const bool direct_b = b.col == 1 && m <= 128;
  for (long j0 = 0; j0 < n; j0 += max_width<T>) {
    const long nb = smaller(n - j0, max_width<T>);
    for (long k0 = 0; k0 < k; k0 += depth) {
      const long kb = smaller(k - k0, depth);
      const T* const b_block = b.data + k0 * b.row + j0 * b.col;
      for (long j = 0; j < nb; j += width) {
        const long left = nb - j;
        if (direct_b && left >= width) continue;
        pack(set, b_block + j * b.col, b.row, b.col, kb, smaller(left, width), b_space + j * kb,
             left > lanes ? width : lanes);
      }
      const bool keep = k0 > 0 || beta != T{};
      const T factor = k0 > 0 ? T{1} : beta;
      for (long i0 = 0; i0 < m; i0 += max_height) {
        const long mb = smaller(m - i0, max_height);
        const T* const a_block = a.data + i0 * a.row + k0 * a.col;
        if (copy_rows) pack(set, a_block, a.row, 1, mb, kb, a_space, kb + row_gap);
        if (copy_cols) pack(set, a_block, a.col, 1, kb, mb, a_space, mb);
        const T* const a_from = copy_rows || copy_cols ? a_space : a_block;
        const long a_row = copy_rows ? kb + row_gap : a.row, a_col = copy_cols ? mb : a.col;
        for (long j = 0; j < nb; j += width) {
          const long left = nb - j;
          const bool whole = left >= width;
          const T* const b_tile = direct_b && whole ? b_block + j : b_space + j * kb;
          const long b_row = direct_b && whole ? b.row : left > lanes ? width : lanes;
          for (long i = 0; i < mb;) {
            const auto& height = set.fit(mb - i);
            const tile_fn<T> kernel = left > lanes ? height.wide : height.narrow;
            const T* const a_tile = a_from + i * a_row;
            T* const c_tile = c.data + (i0 + i) * c.row + (j0 + j) * c.col;
            if (c.col == 1 && (whole || left == lanes)) {
              kernel(kb, a_tile, a_row, a_col, b_tile, b_row, alpha, factor, keep, c_tile, c.row);
            } else {
              tile_by_copy<T>(kernel, height.rows, smaller(left, width), kb, a_tile, a_row, a_col, b_tile, b_row, alpha,
                              factor, keep, {c_tile, c.row, c.col});
            }
            i += height.rows;
          }
        }
      }
    }
  }
}

}  // namespace gemm_detail

// An upper bound for every CPU and all strides; the product touches no byte behind it.
template <class T>
constexpr std::size_t gemm_workspace_bytes(long m, long n, long k) {
  using namespace gemm_detail;
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const long as_is = packed_b<T>(n, k) + packed_a<T>(m, k);
  const long swapped = packed_b<T>(m, k) + packed_a<T>(n, k);
  return static_cast<std::size_t>(as_is < swapped ? swapped : as_is) * sizeof(T);
}

// C = alpha * A B + beta * C for A [m, k], B [k, n]. C must not overlap A, B or the workspace and is not read when beta
// is zero. `workspace` is 64-byte aligned and has gemm_workspace_bytes<T>(m, n, k) bytes; it may be null when that is
// zero. `level` must be supported. alpha == 0 follows IEEE: a NaN in A or B reaches C.
template <class T>
void gemm(long m, long n, long k, T alpha, matrix_view<const std::type_identity_t<T>> a,
          matrix_view<const std::type_identity_t<T>> b, std::type_identity_t<T> beta,
          matrix_view<std::type_identity_t<T>> c, void* workspace, isa level) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "gemm computes in float or in double");
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    for (long i = 0; i < m; ++i) {
      for (long j = 0; j < n; ++j) {
        T& x = c.data[i * c.row + j * c.col];
        x = beta == T{} ? T{} : beta * x;
      }
    }
    return;
  }
  const auto& set = gemm_detail::tiles<T>(level);
  T* const space = static_cast<T*>(workspace);
  if (c.col != 1 && c.row == 1) {  // C' = B' A' has unit columns
    gemm_detail::multiply<T>(set, n, m, k, alpha, {b.data, b.col, b.row}, {a.data, a.col, a.row}, beta,
                             {c.data, c.col, c.row}, space);
  } else {
    gemm_detail::multiply<T>(set, m, n, k, alpha, a, b, beta, c, space);
  }
}

template <class T>
void gemm(long m, long n, long k, T alpha, matrix_view<const std::type_identity_t<T>> a,
          matrix_view<const std::type_identity_t<T>> b, std::type_identity_t<T> beta,
          matrix_view<std::type_identity_t<T>> c, void* workspace) {
  gemm<T>(m, n, k, alpha, a, b, beta, c, workspace, best_isa());
}

}  // namespace shardwise::host

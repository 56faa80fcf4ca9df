// SPDX-License-Identifier: Apache-2.0
// The tiles of a host matrix product: a few rows by one or two vectors of columns, one kernel for each instruction set.
#pragma once

#include <cstddef>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {
namespace gemm_detail {

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

#define SHARDWISE_GEMM_PUT(r, v)               \
  {                                            \
    T* const to = c + r * c_row + (v) * lanes; \
    vec sum = acc[r * V + (v)] * scale;        \
    SHARDWISE_GEMM_ROUND(sum);                 \
    if (keep) {                                \
      vec old;                                 \
      __builtin_memcpy(&old, to, sizeof old);  \
      SHARDWISE_GEMM_FMA(sum, factor, old);    \
    }                                          \
    __builtin_memcpy(to, &sum, sizeof sum);    \
  }

#define SHARDWISE_GEMM_STORE(r, p)                    \
  if constexpr (R > r) {                              \
    SHARDWISE_GEMM_PUT(r, 0)                          \
    if constexpr (V > 1) SHARDWISE_GEMM_PUT(r, V - 1) \
  }

#define SHARDWISE_GEMM_TILE(name, bytes, ...)                                                                           \
  template <class T, int R, int V>                                                                                      \
  __VA_ARGS__ void name(long k, const T* a, long a_row, long a_col, const T* b, long b_row, T alpha, T beta, bool keep, \
                        T* c, long c_row) {                                                                             \
    static_assert(R <= 12 && (V == 1 || V == 2));                                                                       \
    using vec = typename vector_of<T, bytes>::type;                                                                     \
    constexpr long lanes = bytes / long{sizeof(T)};                                                                     \
    vec acc[std::size_t{R} * std::size_t{V}];                                                                           \
    const long rs = a_row * long{sizeof(T)}, rs3 = 3 * rs, ks = a_col * long{sizeof(T)};                                \
    const char* p0 = reinterpret_cast<const char*>(a);                                                                  \
    const char* p1 = p0 + (R > 4 ? 4 * rs : 0);                                                                         \
    const char* p2 = p0 + (R > 8 ? 8 * rs : 0);                                                                         \
    SHARDWISE_GEMM_ROWS(SHARDWISE_GEMM_ZERO)                                                                            \
    for (; k > 0; --k) {                                                                                                \
      vec b0, b1;                                                                                                       \
      __builtin_memcpy(&b0, b, sizeof b0);                                                                              \
      __builtin_memcpy(&b1, b + (V - 1) * lanes, sizeof b1);                                                            \
      SHARDWISE_GEMM_ROWS(SHARDWISE_GEMM_STEP)                                                                          \
      b += b_row;                                                                                                       \
      p0 += ks;                                                                                                         \
      if constexpr (R > 4) p1 += ks;                                                                                    \
      if constexpr (R > 8) p2 += ks;                                                                                    \
      SHARDWISE_GEMM_OPAQUE(p0, p1, p2);                                                                                \
    }                                                                                                                   \
    vec scale, factor;                                                                                                  \
    SHARDWISE_GEMM_SPLAT(scale, alpha);                                                                                 \
    SHARDWISE_GEMM_SPLAT(factor, beta);                                                                                 \
    SHARDWISE_GEMM_ROWS(SHARDWISE_GEMM_STORE)                                                                           \
  }

// Three pointers and one stride address twelve rows; without this line a compiler may carry twelve pointers instead.
#define SHARDWISE_GEMM_OPAQUE(p0, p1, p2) asm("" : "+r"(p0), "+r"(p1), "+r"(p2))

#if defined(__x86_64__)
#define SHARDWISE_GEMM_SPLAT(x, value)                                                      \
  if constexpr (sizeof(T) == 4) asm("vbroadcastss {%1, %0|%0, %1}" : "=v"(x) : "m"(value)); \
  else asm("vbroadcastsd {%1, %0|%0, %1}" : "=v"(x) : "m"(value))
#define SHARDWISE_GEMM_FMA(sum, x, y)                                                                      \
  {                                                                                                        \
    if constexpr (sizeof(T) == 4) asm("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(x), "v"(y)); \
    else asm("vfmadd231pd {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(x), "v"(y));                          \
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
  x = (value) - vec {}
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

}  // namespace gemm_detail
}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

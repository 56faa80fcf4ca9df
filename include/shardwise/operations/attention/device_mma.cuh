// SPDX-License-Identifier: Apache-2.0
// What attention by tensor cores is made of: tiles of two-byte elements in shared memory, their fragments in the registers of a warp, and
// products of fragments. Tensor cores as of sm_80 (mma.sync m16n8k16). Which weights count: device_mma_weights.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/operations/attention/device_tiles.cuh>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/float16.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail::mma {

// Kernels for older devices, and their host's side, have no body: is_taken (device_mma_forward.cuh) keeps calls from them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool is_compiled = true;
#else
inline constexpr bool is_compiled = false;
#endif

__device__ inline float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
template <class T>
__device__ std::uint32_t pack(float low, float high) {
  std::uint32_t both;
  if constexpr (std::is_same_v<T, bfloat16>) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// --- tiles ------------------------------------------------------------------------------------------------------------------

// Rows of Size elements in chunks of 16 bytes. Chunk c of row r lies at c ^ r % 8, so that the eight rows that ldmatrix reads at once
// share no bank.
template <int Size>
__device__ int chunk_at(int row, int c) {
  return row * Size + ((c ^ (row & 7)) << 3);
}
__device__ inline std::uint32_t address_of(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

// The rows of one head.
template <class T>
struct head_rows {
  T* data;
  std::int64_t time;
  __device__ head_rows(const host::attention_block<T>& x, std::int64_t b, std::int64_t h)
      : data(x.at(b, h, 0)), time(x.time) {}
  __device__ T* row(int i) const { return data + i * time; }
};

// Begins to copy rows [first, end) to a tile; zeros behind them, and behind the size. whole: they are made of chunks; of a chunk that is
// not there nothing is read.
template <int Rows, int Size, int Threads, class T>
__device__ void fetch(T* tile, const head_rows<const T>& x, int first, int end, int size, bool whole) {
  constexpr int chunks = Size / 8, step = Threads / chunks;
  const int row = static_cast<int>(threadIdx.x) / chunks, c = static_cast<int>(threadIdx.x) % chunks;
  const T* from = x.row(first + row) + 8 * c;
  if (whole) {
    const std::uint32_t to = address_of(tile + chunk_at<Size>(row, c));
    const int left = 8 * c < size ? end - first - row : 0;
#pragma unroll
    for (int n = 0; n < Rows / step; ++n, from += step * x.time)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + 2 * n * step * Size), "l"(from),
                   "r"(n * step < left ? 16 : 0)
                   : "memory");
  } else {
#pragma unroll 1
    for (int n = 0; n < Rows / step; ++n, from += step * x.time)
      for (int e = 0; e < 8; ++e)
        tile[chunk_at<Size>(row + n * step, c) + e] = first + row + n * step < end && 8 * c + e < size ? from[e] : T{};
  }
}
__device__ inline void await_fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Whether what this thread has fetched has an infinity or what is no number.
template <int Rows, int Size, int Threads, class T>
__device__ bool has_infinite(const T* tile) {
  constexpr std::uint32_t low = std::is_same_v<T, bfloat16> ? 0x7F80U : 0x7C00U, high = low << 16;
  constexpr int chunks = Size / 8, step = Threads / chunks;
  static_assert(Threads % chunks == 0 && step % 8 == 0 && Rows % step == 0);
  const T* const from =
      tile + chunk_at<Size>(static_cast<int>(threadIdx.x) / chunks, static_cast<int>(threadIdx.x) % chunks);
  bool found = false;
#pragma unroll
  for (int n = 0; n < Rows / step; ++n) {
    const uint4 v = *reinterpret_cast<const uint4*>(from + n * step * Size);
    for (const std::uint32_t w : {v.x, v.y, v.z, v.w}) found = found || (w & low) == low || (w & high) == high;
  }
  return found;
}

// --- fragments --------------------------------------------------------------------------------------------------------------

// A lane's part of 16 x 16 elements: pairs (row lane / 4, columns 2 (lane % 4)..), that with row + 8, with column + 8, with both.
struct fragment {
  std::uint32_t r[4];
};

template <bool Turned = false>
__device__ fragment load(std::uint32_t address) {
  fragment f;
  if constexpr (Turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"(address));
  return f;
}

// Where this lane reads of a tile: row and half of 16 columns. Fragments of the left factor of a product, and those of a right one
// that lies by its rows, go down the rows first; those of a right one that lies by its columns along the size first.
template <int Size, bool Down>
struct lane_address {
  std::uint32_t at, turn;
  __device__ explicit lane_address(const void* tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32, row = Down ? lane % 16 : lane / 16 * 8 + lane % 8;
    at = address_of(tile) + static_cast<std::uint32_t>(row * Size * 2);
    turn = static_cast<std::uint32_t>((Down ? lane / 16 : lane / 8 % 2) ^ (lane % 8));
  }
  // Of the 16 rows from `row`, a multiple of 16, and the 16 columns from 16 `columns`.
  __device__ std::uint32_t operator()(int row, int columns) const {
    return at + ((static_cast<std::uint32_t>(2 * columns) ^ turn) << 4) + static_cast<std::uint32_t>(row * Size * 2);
  }
};

// c += a b, of a 16 x 16 and b 16 x 8. A lane has of c elements 2 r + e: row lane / 4 + 8 r, column 2 (lane % 4) + e.
template <class T>
__device__ void add_product(float (&c)[4], const fragment& a, std::uint32_t b0, std::uint32_t b1) {
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

// A warp's strips of 16 rows of a tile that stays: held in registers, or read again each time.
template <bool Held, int Strips, int Size>
struct left_rows {
  fragment f[Strips][Size / 16];
  __device__ left_rows(const void* tile, int row) {
    const lane_address<Size, true> at(tile);
#pragma unroll
    for (int m = 0; m < Strips; ++m)
#pragma unroll
      for (int k = 0; k < Size / 16; ++k) f[m][k] = load(at(row + 16 * m, k));
  }
  __device__ fragment operator()(int m, int k) const { return f[m][k]; }
};
template <int Strips, int Size>
struct left_rows<false, Strips, Size> {
  lane_address<Size, true> at;
  int row;
  __device__ left_rows(const void* tile, int first) : at(tile), row(first) {}
  __device__ fragment operator()(int m, int k) const { return load(at(row + 16 * m, k)); }
};

template <int Strips, int Columns>
using strips = float[Strips][Columns / 8][4];

// v(strip, n) = first(strip, n), n as in lane_weights (device_mma_weights.cuh).
template <int Strips, int Count, class First>
__device__ void set(float (&v)[Strips][Count][4], const First& first) {
#pragma unroll
  for (int m = 0; m < Strips; ++m)
#pragma unroll
    for (int n = 0; n < 4 * Count; ++n) v[m][n / 4][n % 4] = first(m, n);
}
struct zero {
  __device__ float operator()(int, int) const { return 0; }
};

// s(row, column) = first + sum over the size of x(row, i) y(column, i).
template <class T, int Size, int Strips, int Count, class Left, class First = zero>
__device__ void set_products(float (&s)[Strips][Count][4], const Left& x, const T* y, const First& first = {}) {
  const lane_address<Size, false> at(y);
  set(s, first);
#pragma unroll
  for (int k = 0; k < Size / 16; ++k) {
    fragment a[Strips];
#pragma unroll
    for (int m = 0; m < Strips; ++m) a[m] = x(m, k);
#pragma unroll
    for (int n = 0; n < Count / 2; ++n) {
      const fragment b = load(at(16 * n, k));
#pragma unroll
      for (int m = 0; m < Strips; ++m) {
        add_product<T>(s[m][2 * n], a[m], b.r[0], b.r[1]);
        add_product<T>(s[m][2 * n + 1], a[m], b.r[2], b.r[3]);
      }
    }
  }
}

// out(row, column) += sum over k of w(row, k) y(k, column), of weights rounded to T.
template <class T, int Size, int Strips, int Count>
__device__ void add_weighted(float (&out)[Strips][Size / 8][4], const float (&w)[Strips][Count][4], const T* y) {
  const lane_address<Size, true> at(y);
#pragma unroll
  for (int k = 0; k < Count / 2; ++k) {
    fragment a[Strips];
#pragma unroll
    for (int m = 0; m < Strips; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[m].r[i] = pack<T>(w[m][2 * k + i / 2][i % 2 * 2], w[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int n = 0; n < Size / 16; ++n) {
      const fragment b = load<true>(at(16 * k, n));
#pragma unroll
      for (int m = 0; m < Strips; ++m) {
        add_product<T>(out[m][2 * n], a[m], b.r[0], b.r[1]);
        add_product<T>(out[m][2 * n + 1], a[m], b.r[2], b.r[3]);
      }
    }
  }
}
// The same where y has what is not finite: what is not seen (seen_bits of each strip) takes nothing of y, whatever it holds.
template <class T, int Size, int Strips, int Count>
__device__ void add_weighted_plainly(float (&out)[Strips][Size / 8][4], const float (&w)[Strips][Count][4],
                                     const std::uint32_t (&seen)[Strips], const T* y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float of[Strips][2][Count * 2];  // not in registers: read by a number that is not constant
#pragma unroll
  for (int m = 0; m < Strips; ++m)
#pragma unroll
    for (int i = 0; i < Count * 4; ++i) of[m][i / 2 % 2][i / 4 * 2 + i % 2] = w[m][i / 4][i % 4];
#pragma unroll 1
  for (int k = 0; k < Count * 8; ++k) {
    const int from = lane / 4 * 4 + k % 8 / 2;  // the lane that has column k
#pragma unroll
    for (int m = 0; m < Strips; ++m) {
      const std::uint32_t bits = __shfl_sync(0xffffffffU, seen[m], from) >> (k / 8 * 4 + k % 2);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float p = __shfl_sync(0xffffffffU, of[m][r][k / 8 * 2 + k % 2], from);
        if ((bits >> 2 * r & 1U) == 0) continue;
#pragma unroll
        for (int n = 0; n < Size / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            out[m][n][2 * r + e] += p * static_cast<float>(y[chunk_at<Size>(k, n) + 2 * (lane % 4) + e]);
      }
    }
  }
}

// Rows from `first`, those before `end`, each times its factor (of strips and halves).
template <class T, int Size, int Strips>
__device__ void store_rows(const head_rows<T>& to, int first, int end, const float (&v)[Strips][Size / 8][4],
                           const float (&factor)[Strips][2], int size, bool whole) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < Strips; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = first + 16 * m + 8 * r + lane / 4;
      if (i >= end) continue;
      T* const row = to.row(i);
#pragma unroll
      for (int n = 0; n < Size / 8; ++n) {
        const int c = 8 * n + 2 * (lane % 4);
        const float low = v[m][n][2 * r] * factor[m][r], high = v[m][n][2 * r + 1] * factor[m][r];
        if (whole && c < size) *reinterpret_cast<std::uint32_t*>(row + c) = pack<T>(low, high);
        if (!whole && c < size) row[c] = static_cast<T>(low);
        if (!whole && c + 1 < size) row[c + 1] = static_cast<T>(high);
      }
    }
}

}  // namespace attention_detail::mma

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// What attention by tensor cores is made of: tiles in shared memory, their fragments in the registers of a warp, and products of
// fragments. How elements come to tensor cores: device_mma_factors.cuh. Which weights count: device_mma_weights.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/operations/attention/device_mma_factors.cuh>
#include <shardwise/operations/attention/device_tiles.cuh>
#include <shardwise/support/config.hpp>

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
template <class T>
inline constexpr int chunk = 16 / static_cast<int>(sizeof(T));
template <class T, int Size>
__device__ int chunk_at(int row, int c) {
  return row * Size + (c ^ (row & 7)) * chunk<T>;
}
template <class T, int Size>
__device__ int element_at(int row, int column) {
  return chunk_at<T, Size>(row, column / chunk<T>) + column % chunk<T>;
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
  constexpr int each = chunk<T>, chunks = Size / each, step = Threads / chunks, bytes = static_cast<int>(sizeof(T));
  const int row = static_cast<int>(threadIdx.x) / chunks, c = static_cast<int>(threadIdx.x) % chunks;
  const T* from = x.row(first + row) + each * c;
  if (whole) {
    const std::uint32_t to = address_of(tile + chunk_at<T, Size>(row, c));
    const int left = each * c < size ? end - first - row : 0;
#pragma unroll
    for (int n = 0; n < Rows / step; ++n, from += step * x.time)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + bytes * n * step * Size), "l"(from),
                   "r"(n * step < left ? 16 : 0)
                   : "memory");
  } else {
#pragma unroll 1
    for (int n = 0; n < Rows / step; ++n, from += step * x.time)
      for (int e = 0; e < each; ++e)
        tile[chunk_at<T, Size>(row + n * step, c) + e] = first + row + n * step < end && each * c + e < size ? from[e] : T{};
  }
}
__device__ inline void await_fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Whether what this thread has fetched has an infinity or what is no number.
template <int Rows, int Size, int Threads, class T>
__device__ bool has_infinite(const T* tile) {
  constexpr std::uint32_t low = std::is_same_v<T, float>      ? 0x7F800000U
                                : std::is_same_v<T, bfloat16> ? 0x7F80U
                                                              : 0x7C00U,
                          high = sizeof(T) == 2 ? low << 16 : low;
  constexpr int chunks = Size / chunk<T>, step = Threads / chunks;
  static_assert(Threads % chunks == 0 && step % 8 == 0 && Rows % step == 0);
  const T* const from =
      tile + chunk_at<T, Size>(static_cast<int>(threadIdx.x) / chunks, static_cast<int>(threadIdx.x) % chunks);
  bool found = false;
#pragma unroll
  for (int n = 0; n < Rows / step; ++n) {
    const uint4 v = *reinterpret_cast<const uint4*>(from + n * step * Size);
    for (const std::uint32_t w : {v.x, v.y, v.z, v.w}) found = found || (w & low) == low || (w & high) == high;
  }
  return found;
}

// --- fragments --------------------------------------------------------------------------------------------------------------

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

__device__ inline std::uint32_t read_word(std::uint32_t address) {
  std::uint32_t w;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(w) : "r"(address));
  return w;
}

// Where this lane reads of a tile whose rows are so many bytes: row and half of 32 bytes. Fragments of the left factor of a product, and
// those of a right one that lies by its rows, go down the rows first; those of a right one that lies by its columns along the size first.
template <int Row, bool Down>
struct lane_address {
  std::uint32_t at, turn;
  __device__ explicit lane_address(const void* tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32, row = Down ? lane % 16 : lane / 16 * 8 + lane % 8;
    at = address_of(tile) + static_cast<std::uint32_t>(row * Row);
    turn = static_cast<std::uint32_t>((Down ? lane / 16 : lane / 8 % 2) ^ (lane % 8));
  }
  // Of the 16 rows from `row`, a multiple of 16, and the 32 bytes from 32 `k`.
  __device__ std::uint32_t operator()(int row, int k) const {
    return at + ((static_cast<std::uint32_t>(2 * k) ^ turn) << 4) + static_cast<std::uint32_t>(row * Row);
  }
};

// A warp's strips of 16 rows of a tile that stays: held in registers, or read again each time.
template <class F, bool Held, int Strips, int Size>
struct left_rows {
  static constexpr int unrolled = row_bytes<F, Size> / 32;
  fragment f[Strips][row_bytes<F, Size> / 32];
  __device__ left_rows(const void* tile, int row) {
    const lane_address<row_bytes<F, Size>, true> at(tile);
#pragma unroll
    for (int m = 0; m < Strips; ++m)
#pragma unroll
      for (int k = 0; k < row_bytes<F, Size> / 32; ++k) f[m][k] = load(at(row + 16 * m, k));
  }
  __device__ fragment operator()(int m, int k) const { return f[m][k]; }
};
template <class F, int Strips, int Size>
struct left_rows<F, false, Strips, Size> {
  static constexpr int unrolled =
      sizeof(typename F::element) == 4 ? 4 : row_bytes<F, Size> / 32;  // fewer registers, no spills
  lane_address<row_bytes<F, Size>, true> at;
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

// c(strip, first + n) += a(strip) b(n).
template <class F, int Term = 0, int Strips, int Count>
__device__ __forceinline__ void add_products(float (&c)[Strips][Count][4], int first, const typename F::left (&a)[Strips],
                                             const typename F::right (&b)[F::together]) {
#pragma unroll
  for (int n = 0; n < F::together; ++n)
#pragma unroll
    for (int m = 0; m < Strips; ++m) F::template add<Term>(c[m][first + n], a[m], b[n]);
  if constexpr (Term + 1 < F::terms) add_products<F, Term + 1>(c, first, a, b);
}

// s(row, column) = first + sum over the size of x(row, i) y(column, i).
template <class F, int Size, int Strips, int Count, class Left, class First = zero>
__device__ void set_products(float (&s)[Strips][Count][4], const Left& x, const typename F::element* y,
                             const First& first = {}) {
  static_assert(Count % F::together == 0);
  const lane_address<row_bytes<F, Size>, false> at(y);
  set(s, first);
#pragma unroll Left::unrolled
  for (int k = 0; k < row_bytes<F, Size> / 32; ++k) {
    typename F::left a[Strips];
#pragma unroll
    for (int m = 0; m < Strips; ++m) a[m] = F::left_of(x(m, k));
#pragma unroll
    for (int n = 0; n < Count; n += F::together) {
      typename F::right b[F::together];
#pragma unroll
      for (int i = 0; i < F::together; i += 2) {
        const fragment both = load(at(8 * (n + i), k));
        b[i] = F::right_of(both.r[0], both.r[1]);
        b[i + 1] = F::right_of(both.r[2], both.r[3]);
      }
      add_products<F>(s, n, a, b);
    }
  }
}

// out(row, column) += sum over k of w(row, k) y(k, column), of weights rounded to the element.
template <class F, int Size, int Strips, int Count>
__device__ void add_weighted_two_bytes(float (&out)[Strips][Size / 8][4], const float (&w)[Strips][Count][4],
                                       const typename F::element* y) {
  const lane_address<row_bytes<F, Size>, true> at(y);
#pragma unroll
  for (int k = 0; k < Count / 2; ++k) {
    fragment a[Strips];
#pragma unroll
    for (int m = 0; m < Strips; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m].r[i] = pack<typename F::element>(w[m][2 * k + i / 2][i % 2 * 2], w[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int n = 0; n < Size / 16; ++n) {
      const fragment b = load<true>(at(16 * k, n));
      add_products<F>(out, 2 * n, a, {F::right_of(b.r[0], b.r[1]), F::right_of(b.r[2], b.r[3])});
    }
  }
}
// Of floats. Columns 2 t and 2 t + 1 of eight of w, and these rows of y, are taken for words t and t + 4 of the product's depth, so no
// weight changes its lane; eight lanes by four read four rows of two chunks, which share no bank. A tile's sums are added to `out` once:
// tensor cores cut sums off, which grows with their number.
template <class F, int Size, int Strips, int Count>
__device__ void add_weighted_floats(float (&out)[Strips][Size / 8][4], const float (&w)[Strips][Count][4], const float* y) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = 2 * (lane % 4), column = lane / 4;
  typename F::left a[Count][Strips];
#pragma unroll
  for (int k = 0; k < Count; ++k)
#pragma unroll
    for (int m = 0; m < Strips; ++m)
      a[k][m] = F::left_of({{__float_as_uint(w[m][k][0]), __float_as_uint(w[m][k][2]), __float_as_uint(w[m][k][1]),
                             __float_as_uint(w[m][k][3])}});
#pragma unroll
  for (int n = 0; n < Size / 8; n += F::together) {
    std::uint32_t even[F::together], odd[F::together];
#pragma unroll
    for (int i = 0; i < F::together; ++i) {
      even[i] = address_of(y + element_at<float, Size>(row, 8 * (n + i) + column));
      odd[i] = address_of(y + element_at<float, Size>(row + 1, 8 * (n + i) + column));
    }
    float sum[Strips][F::together][4];
    set(sum, zero{});
#pragma unroll
    for (int k = 0; k < Count; ++k) {
      typename F::right b[F::together];
#pragma unroll
      for (int i = 0; i < F::together; ++i)
        b[i] = F::right_of(read_word(even[i] + 32 * k * Size), read_word(odd[i] + 32 * k * Size));
      add_products<F>(sum, 0, a[k], b);
    }
#pragma unroll
    for (int m = 0; m < Strips; ++m)
#pragma unroll
      for (int i = 0; i < 4 * F::together; ++i) out[m][n + i / 4][i % 4] += sum[m][i / 4][i % 4];
  }
}
template <class F, int Size, int Strips, int Count>
__device__ void add_weighted(float (&out)[Strips][Size / 8][4], const float (&w)[Strips][Count][4],
                             const typename F::element* y) {
  if constexpr (sizeof(typename F::element) == 4) add_weighted_floats<F, Size>(out, w, y);
  else add_weighted_two_bytes<F, Size>(out, w, y);
}
// The same where y has what is not finite: what is not seen (seen_bits of each strip) takes nothing of y, whatever it holds.
template <class T, int Size, int Strips, int Count>
__device__ void add_weighted_plainly(float (&out)[Strips][Size / 8][4], const float (&w)[Strips][Count][4],
                                     const std::uint32_t (&seen)[Strips], const T* y) {
  constexpr int each = 8 / chunk<T>;  // chunks of eight columns
  const int lane = static_cast<int>(threadIdx.x) % 32, column = 2 * (lane % 4), of_chunk = each == 1 ? 0 : column / chunk<T>,
            within = column - of_chunk * chunk<T>;
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
            out[m][n][2 * r + e] += p * static_cast<float>(y[chunk_at<T, Size>(k, each * n + of_chunk) + within + e]);
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
        if constexpr (sizeof(T) == 4) {
          if (whole && c < size) *reinterpret_cast<float2*>(row + c) = {low, high};
        } else {
          if (whole && c < size) *reinterpret_cast<std::uint32_t*>(row + c) = pack<T>(low, high);
        }
        if (!whole && c < size) row[c] = static_cast<T>(low);
        if (!whole && c + 1 < size) row[c + 1] = static_cast<T>(high);
      }
    }
}

}  // namespace attention_detail::mma

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// What the device kernels of attention are made of: tiles in shared memory, scores of a tile, sums along its rows. Storage T, all
// arithmetic in C.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/operations/attention/host_plain.hpp>
#include <shardwise/runtime/cuda/device/launch.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/cuda/error.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// A block is 16 by 16 threads; thread (y, x) has rows y + 16 r and columns x + 16 c of a tile.
inline constexpr int side = 16, threads = side * side;
inline constexpr int most_size = 256;  // of heads

// Rows of a tile of queries and of keys: as many as shared memory has room for beside heads of `Size`.
template <class C, int Size>
inline constexpr int tile_rows = sizeof(C) == 8 && Size > 128 ? 16 : 32;

// Shared memory of a kernel that keeps `tiles` tiles of numbers of heads and `weights` of weights. A row is one number longer, so
// that a column's do not share a bank.
template <class C, int Size>
constexpr int shared_bytes(int tiles, int weights, std::int64_t size) {
  constexpr int rows = tile_rows<C, Size>;
  return static_cast<int>(sizeof(C)) * rows * (tiles * (static_cast<int>(size) + 1) + weights * (rows + 1));
}

// Rows [first, end) of a block of one head, to shared memory; zeros behind them.
template <int Rows, class T, class C>
__device__ void stage(C* to, const host::attention_block<const T>& x, std::int64_t b, std::int64_t h, std::int64_t first,
                      std::int64_t end, int size) {
  for (int i = static_cast<int>(threadIdx.x); i < Rows * size; i += threads) {
    const int row = i / size, c = i - row * size;
    to[row * (size + 1) + c] = first + row < end ? static_cast<C>(x.at(b, h, first + row)[c]) : C(0);
  }
}

// s(row, column) = sum of x(row, i) y(column, i).
template <int Each, class C>
__device__ void products(C (&s)[Each][Each], const C* x, const C* y, int size, int ty, int tx) {
  for (int r = 0; r < Each; ++r)
    for (int c = 0; c < Each; ++c) s[r][c] = C(0);
  for (int i = 0; i < size; ++i) {
    C a[Each], b[Each];
#pragma unroll
    for (int r = 0; r < Each; ++r) a[r] = x[(ty + side * r) * (size + 1) + i];
#pragma unroll
    for (int c = 0; c < Each; ++c) b[c] = y[(tx + side * c) * (size + 1) + i];
#pragma unroll
    for (int r = 0; r < Each; ++r)
#pragma unroll
      for (int c = 0; c < Each; ++c) s[r][c] += a[r] * b[c];
  }
}

// Whether a query of the block sees a key: by its place, the mask and the documents.
template <class T, class C>
__device__ bool is_seen(const host::attention_call<T, C>& x, std::int64_t b, std::int64_t h, std::int64_t i,
                        std::int64_t j) {
  return i < x.queries && j >= x.first_key(i) && j < x.end_key(i) && x.sees(b, h, i, j);
}
template <class T, class C>
__device__ C biased(const host::attention_call<T, C>& x, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
                    C s) {
  return x.bias ? x.scale * s + static_cast<C>(x.bias.row(b, h, i)[j * x.bias.stride[3]]) : x.scale * s;
}

// What a weight is multiplied by where some are dropped.
template <class T, class C>
__device__ C kept(const host::attention_call<T, C>& x, host::attention_drops& drops, std::int64_t b, std::int64_t h,
                  std::int64_t i, std::int64_t j) {
  return x.key ? drops.template factor<C, host::math<C>>(host::first_weight(x, b, h, i) + j) : C(1);
}
template <class T, class C>
__device__ host::attention_drops drops_of(const host::attention_call<T, C>& x, double p) {
  return x.key ? host::drops_of<host::math<C>>(x.key, p) : host::attention_drops{};
}

// Over the threads of one row.
template <int Threads = side, class C>
__device__ C row_max(C v) {
  for (int step = Threads / 2; step > 0; step /= 2) {
    const C other = __shfl_xor_sync(0xffffffffU, v, step, Threads);
    v = v > other ? v : other;
  }
  return v;
}
template <int Threads = side, class C>
__device__ C row_sum(C v) {
  for (int step = Threads / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffU, v, step, Threads);
  return v;
}

// out(row, column) += sum over k < count of w(row, k) y(k, column): weights that are 0 take nothing of y, whatever it holds.
// Turned: of w(k, row).
template <bool Turned, int Each, int Columns, class C>
__device__ void add_weighted(C (&out)[Each][Columns], const C* w, const C* y, int count, int size, int ty, int tx) {
  constexpr int rows = Each * side;
  for (int k = 0; k < count; ++k)
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      const C p = Turned ? w[k * (rows + 1) + ty + side * r] : w[(ty + side * r) * (rows + 1) + k];
      if (p == C(0)) continue;
#pragma unroll
      for (int c = 0; c < Columns; ++c)
        if (tx + side * c < size) out[r][c] += p * y[k * (size + 1) + tx + side * c];
    }
}

template <int Each, int Columns, class T, class C>
__device__ void store(const host::attention_block<T>& to, std::int64_t b, std::int64_t h, std::int64_t first,
                      std::int64_t end, const C (&v)[Each][Columns], int size, int ty, int tx) {
  for (int r = 0; r < Each; ++r)
    for (int c = 0; c < Columns; ++c)
      if (first + ty + side * r < end && tx + side * c < size)
        to.at(b, h, first + ty + side * r)[tx + side * c] = static_cast<T>(v[r][c]);
}

// Which tile of which head this block has; heads are counted through the batch.
struct place {
  std::int64_t b, h, first;
  __device__ place(std::int64_t heads, std::int64_t tiles, int rows) {
    const std::int64_t n = blockIdx.x;
    first = n % tiles * rows;
    h = n / tiles % heads;
    b = n / tiles / heads;
  }
};
inline std::int64_t tiles_of(std::int64_t n, int rows) { return (n + rows - 1) / rows; }

// The least size of a head that the kernels of this header have code for. Smaller ones have other kernels: those of registers double,
// those of tensor cores float, which a device without them runs by the code for large heads.
template <class T>
inline constexpr int least_size = sizeof(T) == 2 ? 64 : most_size;

// launch(a constant Size) with the least of 64, 128, 256 from Least on that holds heads of `size`. Throws std::invalid_argument above
// those.
template <int Least = 64, class F>
void by_size(std::int64_t size, F&& launch) {
  if constexpr (Least <= 64)
    if (size <= 64) return launch(std::integral_constant<int, 64>{});
  if constexpr (Least <= 128)
    if (size <= 128) return launch(std::integral_constant<int, 128>{});
  if (size <= most_size) launch(std::integral_constant<int, most_size>{});
  else
    throw std::invalid_argument("shardwise: scaled_dot_product_attention: heads of size " + std::to_string(size) +
                                " are given; kernels on GPUs have room for 256: split them into more heads, or write the "
                                "attention as matmul, softmax and matmul");
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

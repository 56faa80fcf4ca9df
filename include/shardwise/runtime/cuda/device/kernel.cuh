// SPDX-License-Identifier: Apache-2.0
// What every device kernel is built on: a walk of up to 2^31 points as a plain value with fast division, and the
// launch.
#pragma once

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/device/launch.cuh>
#include <shardwise/runtime/host/loops.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

using host::walk;

// One struct per operation, as on the host: run<T>(call, context) launches on the context's stream.
template <op_code Op>
struct kernel;

// n / divisor for n < 2^31 by a multiplication (Granlund and Montgomery, PLDI'94): a division costs some 20
// instructions.
struct fast_divisor {
  std::uint32_t divisor = 1, factor = 1, shift = 0;

  fast_divisor() = default;
  explicit fast_divisor(std::int64_t d) : divisor(static_cast<std::uint32_t>(d)) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    factor = static_cast<std::uint32_t>((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - divisor) / divisor + 1);
  }
  __device__ std::uint32_t quotient(std::uint32_t n) const { return (__umulhi(n, factor) + n) >> shift; }
};

// Operands step through `count` points together; offsets are in elements.
template <int K>
struct strided {
  std::uint32_t count = 0;
  std::int32_t rank = 1;
  fast_divisor dim[max_rank + 1];  // the extents, but for dim 0, which no index is divided by
  std::int64_t str[K][max_rank + 1]{};
  std::int64_t base[K]{};

  __device__ void offsets(std::uint32_t i, std::int64_t* off) const {
    for (int k = 0; k < K; ++k) off[k] = base[k];
    for (int d = rank - 1; d > 0; --d) {
      const std::uint32_t q = dim[d].quotient(i), at = i - q * dim[d].divisor;
      for (int k = 0; k < K; ++k) off[k] += at * str[k][d];
      i = q;
    }
    for (int k = 0; k < K; ++k) off[k] += i * str[k][0];
  }
};

template <int K>
std::int64_t points(const walk<K>& w) {
  std::int64_t n = 1;
  for (int d = 0; d < w.rank; ++d) n *= w.ext[d];
  return n;
}

template <int K>
strided<K> make_strided(const walk<K>& w, const std::int64_t* base) {
  strided<K> s;
  s.count = static_cast<std::uint32_t>(points(w));
  s.rank = w.rank;
  for (int d = 0; d < w.rank; ++d) {
    if (d > 0 && w.ext[d] > 0) s.dim[d] = fast_divisor(w.ext[d]);
    for (int k = 0; k < K; ++k) s.str[k][d] = w.str[k][d];
  }
  for (int k = 0; k < K; ++k) s.base[k] = base[k];
  return s;
}

inline constexpr std::int64_t most_points = std::int64_t{1} << 31;

// f(walk, base) for pieces of fewer than `most` points (or of one) that together are the walk; nothing if it is empty.
template <int K, class F>
void each_piece(walk<K> w, const std::int64_t* base, std::int64_t most, F& f) {
  const std::int64_t n = points(w);
  if (n == 0) return;
  if (n < most || n == 1) {
    f(w, base);
    return;
  }
  int d = 0;
  for (int e = 1; e < w.rank; ++e)
    if (w.ext[e] > w.ext[d]) d = e;
  const std::int64_t whole = w.ext[d];
  std::int64_t half = whole / 2, rest[K];
  if (half > 64) half &= ~std::int64_t{63};  // keeps rows whole packs
  for (int k = 0; k < K; ++k) rest[k] = base[k] + half * w.str[k][d];
  w.ext[d] = half;
  each_piece(w, base, most, f);
  w.ext[d] = whole - half;
  each_piece(w, rest, most, f);
}
template <int K, class F>
void each_piece(const walk<K>& w, F&& f) {
  const std::int64_t zero[K]{};
  each_piece(w, zero, most_points, f);
}

// Walk over the leading dims of K operands: their rows.
template <int K>
walk<K> row_walk(const layout* const (&x)[K], int leading) {
  walk<K> w;
  for (int d = 0; d < leading; ++d) {
    std::int64_t s[K]{};
    for (int k = 0; k < K; ++k) s[k] = x[k]->str[d];
    w.push(x[0]->ext[d], s);
  }
  w.merge();
  return w;
}

// Blocks for `items` items: all of them, up to what keeps a device busy for several waves; kernels stride by the grid.
inline unsigned grid_for(std::int64_t items, const context& ctx) {
  const std::int64_t most = std::int64_t{ctx.multiprocessors} * 64;
  return static_cast<unsigned>(items < most ? items : most);
}

template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}

// Fills a densely stored result with zeros.
template <class T>
void zero(const call& c, context& ctx) {
  const std::int64_t n = c.l[result].numel();
  if (n > 0) check(cudaMemsetAsync(c.p[result], 0, static_cast<std::size_t>(n) * sizeof(T), ctx.stream), "cudaMemsetAsync");
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Which weights of a warp's strip a query sees, which are not dropped, and what scores become with a bias: for attention by tensor cores.
#pragma once

#include <cstdint>

#include <shardwise/operations/attention/device_mma.cuh>
#include <shardwise/support/config.hpp>
#include <shardwise/support/philox.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail::mma {

inline constexpr float log2_of_e = 1.4426950408889634F, log_of_2 = 0.6931471805599453F;

// Which keys a query may see by its place, in numbers of 32 bits.
struct sight {
  int first_query, queries, keys, window;
  bool ends;
  template <class T>
  __device__ explicit sight(const host::attention_call<T, float>& x)
      : first_query(static_cast<int>(x.first_query)),
        queries(static_cast<int>(x.queries)),
        keys(static_cast<int>(x.keys)),
        window(static_cast<int>(x.a.window < (1 << 30) ? x.a.window : 1 << 30)),
        ends(x.a.causal != 0 || x.a.window > 0) {}
  __device__ int first_key(int i) const {
    const int first = first_query + i - window + 1;
    return window > 0 ? ::min(::max(first, 0), keys) : 0;
  }
  __device__ int end_key(int i) const { return ends ? ::min(first_query + i + 1, keys) : keys; }

  // Of `rows` queries from i and `columns` keys from j: whether each query sees each key, and whether none sees any.
  __device__ bool sees_all(int i, int rows, int j, int columns) const {
    return static_cast<bool>((i + rows <= queries) & (j >= first_key(i + rows - 1)) & (j + columns <= end_key(i)));
  }
  __device__ bool sees_none(int i, int rows, int j, int columns) const {
    return static_cast<bool>((i >= queries) | (j >= end_key(::min(i + rows, queries) - 1)) | (j + columns <= first_key(i)));
  }
};

// Where weight n = 4 c + 2 r + e of a lane's strip stands, c: its eighth column. Turned: rows are keys.
template <bool Turned>
struct lane_weights {
  int query, key;  // of weight 0
  __device__ lane_weights(int first_query, int first_key) {
    const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4, column = 2 * (lane % 4);
    query = first_query + (Turned ? column : row);
    key = first_key + (Turned ? row : column);
  }
  __device__ int query_of(int n) const { return query + (Turned ? n / 4 * 8 + n % 2 : n / 2 % 2 * 8); }
  __device__ int key_of(int n) const { return key + (Turned ? n / 2 % 2 * 8 : n / 4 * 8 + n % 2); }
};

// Bit n: whether weight n of a strip of `Count` times 8 columns is seen. lse, of this head, or null: queries without any weight.
template <int Count, bool Marked, bool Turned, class T>
__device__ std::uint32_t seen_bits(const host::attention_call<T, float>& x, const sight& by, const lane_weights<Turned>& at,
                                   std::int64_t b, std::int64_t h, const float* lse) {
  static_assert(Count <= 8);
  std::uint32_t bits = 0;
#pragma unroll
  for (int n = 0; n < 4 * Count; ++n) {
    const int i = at.query_of(n), j = at.key_of(n);
    const bool seen =
        static_cast<bool>((i < by.queries) & (j >= by.first_key(i)) & (j < by.end_key(i)));  // without branches
    bits |= seen ? 1U << n : 0U;
  }
  const auto keep = [&](const auto& is_kept) {
#pragma unroll 8
    for (int n = 0; n < 4 * Count; ++n)
      if ((bits >> n & 1U) != 0 && !is_kept(at.query_of(n), at.key_of(n))) bits &= ~(1U << n);
  };
  if (lse) keep([&](int i, int) { return lse[i] != host::math<float>::lowest(); });
  if (Marked && x.mask) keep([&](int i, int j) { return x.mask.row(b, h, i)[j * x.mask.stride[3]] != 0; });
  if (Marked && x.documents) {
    const std::int32_t* const of = x.documents + b * x.keys;
    keep([&](int i, int j) { return of[by.first_query + i] == of[j]; });
  }
  return bits;
}

// Which weights are dropped: those whose word is below the limit. Law: w / 2^32 < p is w < p 2^32, both sides being exact.
struct drop_limit {
  std::uint64_t key, words;
  __device__ explicit drop_limit(const host::attention_drops& d)
      : key(d.key), words(static_cast<std::uint64_t>(::ceil(d.p * 4294967296.0))) {}
  // Bit i: whether word i of a block is kept.
  __device__ std::uint32_t kept(std::int64_t block) const {
    const philox_words w = philox(key, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0);
    std::uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) bits |= w.w[i] < words ? 0U : 1U << i;
    return bits;
  }
};
// Bit n: whether weight n is not dropped. Where rows begin with whole blocks of four words, the lanes that share a block share the work:
// of n % 4 each has one, or of the rows one, and they exchange bits.
template <int Count, bool Turned, class T>
__device__ std::uint32_t kept_bits(const host::attention_call<T, float>& x, const host::attention_drops& drops,
                                   const lane_weights<Turned>& at, std::int64_t b, std::int64_t h) {
  const drop_limit limit(drops);
  std::uint32_t bits = 0;
  if (x.keys % 4 != 0) {
#pragma unroll 1
    for (int n = 0; n < 4 * Count; ++n) {
      const std::int64_t e = host::first_weight(x, b, h, at.query_of(n)) + at.key_of(n);
      bits |= (limit.kept(e / 4) >> (e % 4) & 1U) << n;
    }
    return bits;
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, u = Turned ? lane / 4 % 4 : lane % 2;
  const int query = at.query + (Turned ? u % 2 : 8 * u), key = at.key + (Turned ? u / 2 * 8 - u : -2 * u);
  std::int64_t block = (host::first_weight(x, b, h, query) + key) / 4;
  std::uint32_t mine = 0;
#pragma unroll 2
  for (int c = 0; c < Count; ++c, block += Turned ? 2 * x.keys : 2) mine |= limit.kept(block) << (4 * c);
  if constexpr (Turned) {
#pragma unroll
    for (int v = 0; v < 4; ++v) bits |= (__shfl_sync(0xffffffffU, mine, (lane & 19) | v << 2) >> u & 0x11111111U) << v;
  } else {
    const std::uint32_t other = __shfl_xor_sync(0xffffffffU, mine, 1);
    bits = ((u ? other >> 2 : mine) & 0x33333333U) | ((u ? mine >> 2 : other) & 0x33333333U) << 2;
  }
  return bits;
}
// What a kept weight is multiplied by; 0 where none is kept.
template <class T>
__device__ float kept_factor(const host::attention_call<T, float>& x, const host::attention_drops& drops) {
  return !x.key ? 1.0F : drops.p < 1 ? 1.0F / math<float>::from(1 - drops.p) : 0.0F;
}

// A call's scores in units of log 2 are `unit` times those that tiles have. Law: unit > 0, so that the largest stays the largest; with a
// bias or another scale they are computed anew by rescore, and unit is 1.
template <class T>
__host__ __device__ bool is_rescored(const host::attention_call<T, float>& x) {
  return x.bias || !(x.scale > 0) || x.scale > 1e30F;
}
// Whether a call has what kernels that are not Marked leave out.
template <class T>
bool is_marked(const host::attention_call<T, float>& x) {
  return x.is_marked() || x.key || is_rescored(x);
}
template <class T, int Count, bool Turned>
__device__ void rescore(float (&s)[Count][4], std::uint32_t seen, const host::attention_call<T, float>& x,
                        const lane_weights<Turned>& at, std::int64_t b, std::int64_t h) {
#pragma unroll
  for (int n = 0; n < 4 * Count; ++n) s[n / 4][n % 4] *= x.scale * log2_of_e;
  if (!x.bias) return;
#pragma unroll
  for (int n = 0; n < 4 * Count; ++n)
    if ((seen >> n & 1U) != 0)
      s[n / 4][n % 4] += log2_of_e * static_cast<float>(x.bias.row(b, h, at.query_of(n))[at.key_of(n) * x.bias.stride[3]]);
}

}  // namespace attention_detail::mma

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

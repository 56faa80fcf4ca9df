// SPDX-License-Identifier: Apache-2.0
// Attention by tensor cores (FlashAttention-2; Dao, 2023): a block for each tile of queries of a head, its warps in strips of 16 rows,
// which goes through the keys in tiles that are copied while the one before is computed with. Factors (device_mma.cuh) are elements of two
// bytes, to which weights are rounded before they are multiplied with values, or floats; all else is float.
#pragma once

#include <shardwise/operations/attention/device_mma_weights.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

namespace mma {

// How heads of up to `Size` are cut: a warp has `Strips` times 16 rows of what its block keeps, which stay in registers if Held, and goes
// through the other in tiles of `Columns`; so many blocks are to fit on a multiprocessor.
template <class F, int Size, int Strips, int Warps, int Columns, bool Held, int Blocks>
struct block_shape {
  using factors = F;
  static constexpr int size = Size, strips = Strips, threads = 32 * Warps, columns = Columns, blocks = Blocks;
  static constexpr int warp_rows = 16 * Strips, rows = Warps * warp_rows;
  static constexpr bool held = Held;
  // Of so many tensors whose rows are kept, and of two that come in tiles, in two stages.
  static constexpr int tile_bytes(int kept) { return row_bytes<F, Size> * (kept * rows + 4 * Columns); }
};
// Queries are kept.
template <class F, int Size, int Strips, int Warps, int Keys, bool Held, int Blocks>
struct forward_shape : block_shape<F, Size, Strips, Warps, Keys, Held, Blocks> {
  static constexpr int bytes = forward_shape::tile_bytes(1);
};
template <class F, int Size>
using forward_shape_of = std::conditional_t<
    sizeof(typename F::element) == 4,
    std::conditional_t<Size == 64, forward_shape<F, 64, 1, 4, 64, false, 2>, forward_shape<F, 128, 1, 8, 32, false, 1>>,
    std::conditional_t<Size == 64, forward_shape<F, 64, 1, 4, 64, true, 4>, forward_shape<F, 128, 1, 4, 64, true, 2>>>;

// Marked kernels need more registers.
template <class S, bool Marked>
inline constexpr int blocks_of = Marked && S::blocks > 2 ? 2 : S::blocks;

// What a block knows beside the call.
struct launch {
  bool whole = false;  // rows are chunks of 16 bytes
  int tiles = 0;       // of each head
};

// Where a block stands: blocks of a head follow each other.
struct block_place {
  std::int64_t b, h;
  int tile;
  __device__ block_place(std::int64_t heads, int tiles) {
    const unsigned n = blockIdx.x / static_cast<unsigned>(tiles), all = static_cast<unsigned>(heads);
    tile = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles));
    h = n % all;
    b = n / all;
  }
};

// The largest score so far, in units of log 2, and the sum of exponentials less it: of rows lane / 4 and lane / 4 + 8 of each strip; the
// sum over this lane's columns alone.
template <int Strips>
struct row_statistics {
  float top[Strips][2], total[Strips][2];
  __device__ row_statistics() {
    for (int m = 0; m < Strips; ++m)
      for (int r = 0; r < 2; ++r) {
        top[m][r] = host::math<float>::lowest();
        total[m][r] = 0;
      }
  }
  // Scores become weights; what `out` has so far is brought to the new top.
  template <int Count, int Columns>
  __device__ void weigh(float (&s)[Strips][Count][4], float (&out)[Strips][Columns][4], float unit) {
#pragma unroll
    for (int m = 0; m < Strips; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float largest = s[m][0][2 * r];
#pragma unroll
        for (int n = 0; n < Count; ++n) largest = fmaxf(largest, fmaxf(s[m][n][2 * r], s[m][n][2 * r + 1]));
        for (int step = 1; step < 4; step *= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
        const float before = top[m][r];
        top[m][r] = fmaxf(before, largest * unit);
        const float base = host::detail::finite_or_zero(top[m][r]);
        const float factor = before == top[m][r] ? 1.0F : exp2(before - base);
        float sum = 0;
#pragma unroll
        for (int n = 0; n < Count; ++n)
#pragma unroll
          for (int e = 2 * r; e < 2 * r + 2; ++e) sum += s[m][n][e] = exp2(fmaf(s[m][n][e], unit, -base));
        total[m][r] = total[m][r] * factor + sum;
#pragma unroll
        for (int n = 0; n < Columns; ++n) {
          out[m][n][2 * r] *= factor;
          out[m][n][2 * r + 1] *= factor;
        }
      }
  }
  __device__ void add_up() {
    for (int m = 0; m < Strips; ++m)
      for (int r = 0; r < 2; ++r)
        for (int step = 1; step < 4; step *= 2) total[m][r] += __shfl_xor_sync(0xffffffffU, total[m][r], step);
  }
  // Law: as host::attend_query, the lowest number where nothing is seen.
  __device__ float lse(int m, int r) const {
    return total[m][r] == 0 ? host::math<float>::lowest()
                            : host::detail::finite_or_zero(top[m][r]) * log_of_2 + math<float>::log(total[m][r]);
  }
};

// Scores of what is not seen become the lowest number; others get their bias.
template <bool Marked, class T, int Strips, int Count>
__device__ void hide(float (&s)[Strips][Count][4], std::uint32_t (&seen)[Strips], const host::attention_call<T, float>& x,
                     const sight& by, std::int64_t b, std::int64_t h, int first_row, int first_key) {
#pragma unroll
  for (int m = 0; m < Strips; ++m) {
    const lane_weights<false> at(first_row + 16 * m, first_key);
    seen[m] = seen_bits<Count, Marked>(x, by, at, b, h, nullptr);
    if (Marked && is_rescored(x)) rescore(s[m], seen[m], x, at, b, h);
#pragma unroll
    for (int n = 0; n < 4 * Count; ++n)
      if ((seen[m] >> n & 1U) == 0) s[m][n / 4][n % 4] = host::math<float>::lowest();
  }
}
template <class T, int Strips, int Count>
__device__ void drop(float (&w)[Strips][Count][4], const host::attention_call<T, float>& x,
                     const host::attention_drops& drops, std::int64_t b, std::int64_t h, int first_row, int first_key) {
#pragma unroll
  for (int m = 0; m < Strips; ++m) {
    const std::uint32_t kept = kept_bits<Count>(x, drops, lane_weights<false>(first_row + 16 * m, first_key), b, h);
#pragma unroll
    for (int n = 0; n < 4 * Count; ++n)
      if ((kept >> n & 1U) == 0) w[m][n / 4][n % 4] = 0;
  }
}

template <class T, class S, bool Marked>
__device__ void attend_tile(const host::attention_call<T, float>& x, const host::attention_block<T>& out, float* lse,
                            const launch& l, unsigned char* shared) {
  using F = typename S::factors;
  const block_place at(x.heads, l.tiles);
  const sight by(x);
  const int first = (l.tiles - 1 - at.tile) * S::rows,
            warp_first = first + static_cast<int>(threadIdx.x) / 32 * S::warp_rows;
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  const head_rows<const T> q(x.q, at.b, at.h), k(x.k, at.b, at.h / x.group), v(x.v, at.b, at.h / x.group);
  T *const q_tile = reinterpret_cast<T*>(shared), *const kv_tiles = q_tile + S::rows * S::size;
  const int end = by.end_key(::min(first + S::rows, by.queries) - 1);
  const auto fetch_keys = [&](int key, int stage) {
    T* const to = kv_tiles + stage * 2 * S::columns * S::size;
    fetch<S::columns, S::size, S::threads>(to, k, key, end, size, l.whole);
    fetch<S::columns, S::size, S::threads>(to + S::columns * S::size, v, key, end, value_size, l.whole);
  };
  const bool marked = Marked && (x.is_marked() || is_rescored(x));
  const float unit = Marked && is_rescored(x) ? 1.0F : x.scale * log2_of_e;
  const host::attention_drops drops = Marked ? drops_of(x, x.a.dropout) : host::attention_drops{};
  strips<S::strips, S::size> o;
  set(o, zero{});
  row_statistics<S::strips> rows;
  const int first_key = by.first_key(first) / S::columns * S::columns;
  fetch<S::rows, S::size, S::threads>(q_tile, q, first, by.queries, size, l.whole);
  if (first_key < end) fetch_keys(first_key, 0);
  await_fetched();
  __syncthreads();
  const left_rows<F, S::held, S::strips, S::size> q_rows(q_tile, warp_first - first);
  int stage = 0;
  for (int key = first_key; key < end; key += S::columns, stage ^= 1) {
    await_fetched();
    __syncthreads();
    if (key + S::columns < end) fetch_keys(key + S::columns, stage ^ 1);
    const T *const k_tile = kv_tiles + stage * 2 * S::columns * S::size, *const v_tile = k_tile + S::columns * S::size;
    const bool partly = marked || !by.sees_all(first, S::rows, key, S::columns);
    const bool infinite = partly && __syncthreads_or(has_infinite<S::columns, S::size, S::threads>(v_tile));
    if (by.sees_none(warp_first, S::warp_rows, key, S::columns)) continue;
    strips<S::strips, S::columns> s;
    set_products<F, S::size>(s, q_rows, k_tile);
    std::uint32_t seen[S::strips];
    for (std::uint32_t& bits : seen) bits = ~0U;
    if (marked || !by.sees_all(warp_first, S::warp_rows, key, S::columns))
      hide<Marked>(s, seen, x, by, at.b, at.h, warp_first, key);
    rows.weigh(s, o, unit);
    if (Marked && x.key) drop(s, x, drops, at.b, at.h, warp_first, key);
    if (infinite) add_weighted_plainly<T, S::size>(o, s, seen, v_tile);
    else add_weighted<F, S::size>(o, s, v_tile);
  }
  rows.add_up();
  const float kept = Marked ? kept_factor(x, drops) : 1.0F;
  float factor[S::strips][2];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int m = 0; m < S::strips; ++m)
    for (int r = 0; r < 2; ++r) {
      const int i = warp_first + 16 * m + 8 * r + lane / 4;
      factor[m][r] = rows.total[m][r] == 0 ? 0 : kept / rows.total[m][r];
      if (lse && lane % 4 == 0 && i < by.queries) lse[(at.b * x.heads + at.h) * x.queries + i] = rows.lse(m, r);
    }
  if (out.data) store_rows<T, S::size>({out, at.b, at.h}, warp_first, by.queries, o, factor, value_size, l.whole);
}

template <class T, class S, bool Marked>
__global__ void __launch_bounds__(S::threads, blocks_of<S, Marked>)
    attend_tiles(const __grid_constant__ host::attention_call<T, float> x,
                 const __grid_constant__ host::attention_block<T> out, float* lse, const __grid_constant__ launch l) {
  if constexpr (is_compiled) {
    extern __shared__ __align__(128) unsigned char attention_mma_shared[];
    attend_tile<T, S, Marked>(x, out, lse, l, attention_mma_shared);
  }
}

// --- on the host ------------------------------------------------------------------------------------------------------------

inline constexpr int most_size = 128;  // of heads

// Whether the current device runs a kernel that was compiled for tensor cores: no device before sm_80, nor code for one that the
// driver has translated.
template <class Kernel>
bool is_compiled_here(Kernel kernel) {
  cudaFuncAttributes a{};
  check(cudaFuncGetAttributes(&a, reinterpret_cast<const void*>(kernel)), "cudaFuncGetAttributes");
  return a.ptxVersion >= 80;
}

// What these kernels take: heads of at most 128, and numbers of 32 bits for times. All options, layouts and placements.
template <class F, class T>
bool is_taken(const host::attention_call<T, float>& x) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  return x.size <= most_size && x.value_size <= most_size && x.keys < most && x.first_query + x.queries < most &&
         is_compiled_here(&attend_tiles<T, forward_shape_of<F, 64>, false>);
}

// Whether rows can be copied in chunks of 16 bytes.
template <class T, class... P>
bool are_whole(std::int64_t size, std::int64_t value_size, const T* q, const P*... p) {
  return size % chunk<T> == 0 && value_size % chunk<T> == 0 && reinterpret_cast<std::uintptr_t>(q) % 16 == 0 &&
         (... && (reinterpret_cast<std::uintptr_t>(p) % 16 == 0));
}

// run(factors), of T as a program has them.
template <class T, class F>
bool by_factors(bool tf32, F&& run) {
  if constexpr (sizeof(T) == 2) return run(two_byte_factors<T>{});
  else return tf32 ? run(tf32_factors{}) : run(split_factors{});
}

// run(a constant Size) with 64 or 128.
template <class F>
void by_padded_size(std::int64_t size, F&& run) {
  if (size <= 64) run(std::integral_constant<int, 64>{});
  else run(std::integral_constant<int, 128>{});
}

template <class S, class T>
void attend(const host::attention_call<T, float>& x, const host::attention_block<T>& out, float* lse, cudaStream_t stream) {
  launch l;
  l.whole = are_whole(x.size, x.value_size, x.q.data, x.k.data, x.v.data, out.data);
  l.tiles = static_cast<int>(tiles_of(x.queries, S::rows));
  if (const std::int64_t blocks = l.tiles * x.heads * x.batch; blocks > 0) {
    const auto kernel = is_marked(x) ? &attend_tiles<T, S, true> : &attend_tiles<T, S, false>;
    allow_shared(kernel, S::bytes);
    kernel<<<static_cast<unsigned>(blocks), S::threads, S::bytes, stream>>>(x, out, lse, l);
  }
}

}  // namespace mma

// Whether tensor cores have it. lse: null where nobody wants it; so is out's data. tf32: floats may be rounded to TF32.
template <class T>
bool attend_by_mma(const host::attention_call<T, float>& x, const host::attention_block<T>& out, float* lse, bool tf32,
                   cudaStream_t stream) {
  return mma::by_factors<T>(tf32, [&](auto factors) {
    using F = decltype(factors);
    if (!mma::is_taken<F>(x)) return false;
    mma::by_padded_size(x.size > x.value_size ? x.size : x.value_size, [&](auto size) {
      mma::attend<mma::forward_shape_of<F, decltype(size)::value>>(x, out, lse, stream);
    });
    return true;
  });
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Casts on a device: a launcher for each pair of element types, and one for many tensors at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <shardwise/runtime/cuda/device/convert.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

template <class From, class To>
void cast_elements(const call& c, context& ctx) {
  const layout* const in[1] = {&c.l[0]};
  detail::convert(op_code::cast, host::broadcast_walk<2>(c.l[result], in), as<To>(c.p[result]), as<const From>(c.p[0]), ctx);
}

namespace detail {

// Casts side by side in one launch, cut into chunks, a block each.
template <class From, class To>
struct cast_item {
  const From* x;
  To* o;
  std::int64_t n;
  std::uint32_t first_block;
  std::uint32_t packs;  // 1 if both are aligned to their packs
};
inline constexpr int casts_at_once = 256;
template <class From, class To>
struct cast_list {
  cast_item<From, To> item[casts_at_once];
  int count;
};
inline constexpr int cast_threads = 256, cast_chunk = cast_threads * 32;  // elements of a block
template <class From, class To>
inline constexpr int cast_pack = vector_of<To> < vector_of<From> ? vector_of<To> : vector_of<From>;

template <class From, class To>
__global__ void __launch_bounds__(cast_threads) casts_kernel(const __grid_constant__ cast_list<From, To> list) {
  constexpr int V = cast_pack<From, To>;
  int k = 0;  // the last item that begins no later than this block
  for (int end = list.count; end - k > 1;) {
    const int middle = (k + end) / 2;
    if (blockIdx.x >= list.item[middle].first_block) k = middle;
    else end = middle;
  }
  const cast_item<From, To>& c = list.item[k];
  const std::int64_t begin = std::int64_t{blockIdx.x - c.first_block} * cast_chunk;
  const std::int64_t end = begin + cast_chunk < c.n ? begin + cast_chunk : c.n;
  const std::int64_t packed = c.packs ? begin + (end - begin) / V * V : begin;
#pragma unroll 4
  for (std::int64_t i = begin + std::int64_t{threadIdx.x} * V; i < packed; i += cast_threads * V) {
    const pack<From, V> from = *reinterpret_cast<const pack<From, V>*>(c.x + i);
    pack<To, V> to;
#pragma unroll
    for (int v = 0; v < V; ++v) to.v[v] = converted<To>(from.v[v]);
    *reinterpret_cast<pack<To, V>*>(c.o + i) = to;
  }
  for (std::int64_t i = packed + threadIdx.x; i < end; i += cast_threads) c.o[i] = converted<To>(c.x[i]);
}

// Whether a block's elements lie side by side, in the order of their places.
inline bool is_row_major(const layout& x) {
  std::int64_t step = 1;
  for (int d = x.rank - 1; d >= 0; --d) {
    if (x.ext[d] != 1 && x.str[d] != step) return false;
    step *= x.ext[d];
  }
  return true;
}

}  // namespace detail

// Of neighbours (passes::starts_together) those whose elements lie side by side are one launch; each other one is a launch of its own.
template <class From, class To>
void cast_all(const call* calls, std::size_t count, context& ctx) {
  using item = detail::cast_item<From, To>;
  detail::cast_list<From, To> list;
  list.count = 0;
  std::uint32_t blocks = 0;
  const auto flush = [&] {
    if (list.count > 0)
      launch(op_code::cast, &detail::casts_kernel<From, To>, blocks, detail::cast_threads, ctx.stream, list);
    list.count = 0;
    blocks = 0;
  };
  constexpr int V = detail::cast_pack<From, To>;
  for (std::size_t i = 0; i < count; ++i) {
    const call& c = calls[i];
    const std::int64_t n = c.l[result].numel();
    if (n == 0) continue;
    if (!detail::is_row_major(c.l[0]) || !detail::is_row_major(c.l[result])) {
      cast_elements<From, To>(c, ctx);
      continue;
    }
    const bool packs = reinterpret_cast<std::uintptr_t>(c.p[0]) % sizeof(pack<From, V>) == 0 &&
                       reinterpret_cast<std::uintptr_t>(c.p[result]) % sizeof(pack<To, V>) == 0;
    list.item[list.count++] = item{as<const From>(c.p[0]), as<To>(c.p[result]), n, blocks, packs ? 1U : 0U};
    blocks += static_cast<std::uint32_t>((n + detail::cast_chunk - 1) / detail::cast_chunk);
    if (list.count == detail::casts_at_once) flush();
  }
  flush();
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

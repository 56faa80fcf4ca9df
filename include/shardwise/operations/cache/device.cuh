// SPDX-License-Identifier: Apache-2.0
// Decoding step by step on devices, of float, double and elements of two bytes. Include it in one CUDA source of a program that has a
// kv_cache. Attention: a block for each query of a head, whose four warps share the keys so far and join what they have; positions are
// read on the device, so that a captured step serves all of them. Price: each query of a prompt reads the keys anew, heads of a group
// read theirs each for itself, and one query's keys are not split over several blocks.
#pragma once

#include <stdexcept>

#include <shardwise/operations/cache/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/runtime/cuda/device/index_guard.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace cache_detail {

inline constexpr int warps = 4, lanes = 32;

template <class T>
struct computes_in {
  using type = float;
};
template <>
struct computes_in<double> {
  using type = double;
};

// Where each sequence begins, and how many positions there are, < 0: no end.
struct positions {
  const std::int32_t* at;
  std::int64_t tokens, most;
  index_guard guard;

  // -1: refused; what it would have read or written is left out.
  __device__ std::int64_t of(std::int64_t b) const {
    const std::int64_t first = at[b], last = first + (tokens > 0 ? tokens - 1 : 0);
    if (first >= 0 && (most < 0 || first + tokens <= most)) return first;
    guard.checked(first < 0 ? first : last, most < 0 ? host::most_position_id : most);
    return -1;
  }
};

template <class T>
__global__ void __launch_bounds__(256)
    write_rows(const __grid_constant__ host::cache_blocks c, const T* rows, T* cache, const __grid_constant__ positions p) {
  const std::int64_t fresh = c.rows * c.inner, all = c.batch * c.lines * fresh, step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < all; n += step) {
    const std::int64_t line = n / fresh, at = p.of(line / c.lines);
    if (at >= 0) cache[(line * c.positions + at) * c.inner + n % fresh] = rows[n];
  }
}

template <class C>
__device__ C sum_of_lanes(C x) {
  for (int m = lanes / 2; m > 0; m /= 2) x += __shfl_xor_sync(0xffffffffU, x, m);
  return x;
}

// Each: elements of a query that a lane holds.
template <int Each, class T, class C>
__global__ void __launch_bounds__(warps* lanes)
    attend_cached(const __grid_constant__ host::attention_call<T, C> x, const __grid_constant__ host::attention_block<T> out,
                  const __grid_constant__ positions p) {
  __shared__ C tops[warps], totals[warps], sums[warps][lanes * Each];
  const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t i = blockIdx.x % x.queries, h = blockIdx.x / x.queries % x.heads, b = blockIdx.x / x.queries / x.heads;
  const std::int64_t at = p.of(b), own = at + x.first_query + i, kh = h / x.group;
  const std::int64_t first = x.a.window > 0 && own >= x.a.window ? own - x.a.window + 1 : 0, end = at < 0 ? 0 : own + 1;
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  C q[Each], o[Each];
  for (int e = 0; e < Each; ++e) {
    const int d = lane + e * lanes;
    q[e] = d < size ? static_cast<C>(x.q.at(b, h, i)[d]) * x.scale : C(0);
    o[e] = C(0);
  }
  C top = host::math<C>::lowest(), total = C(0);
  for (std::int64_t j = first + warp; j < end; j += warps) {
    const T *const k = x.k.at(b, kh, j), *const v = x.v.at(b, kh, j);
    C s = C(0);
    for (int e = 0; e < Each; ++e)
      if (const int d = lane + e * lanes; d < size) s += q[e] * static_cast<C>(k[d]);
    s = sum_of_lanes(s);
    const C now = s > top ? s : top, base = host::detail::finite_or_zero(now);
    const C factor = total == C(0) ? C(0) : math<C>::exp(top - base), weight = math<C>::exp(s - base);
    total = total * factor + weight;
    for (int e = 0; e < Each; ++e) {
      const int d = lane + e * lanes;
      o[e] = o[e] * factor + (d < value_size ? weight * static_cast<C>(v[d]) : C(0));
    }
    top = now;
  }
  if (lane == 0) tops[warp] = top, totals[warp] = total;
  for (int e = 0; e < Each; ++e) sums[warp][lane + e * lanes] = o[e];
  __syncthreads();
  C highest = host::math<C>::lowest(), whole = C(0), factors[warps];
  for (int w = 0; w < warps; ++w) highest = tops[w] > highest ? tops[w] : highest;
  highest = host::detail::finite_or_zero(highest);
  for (int w = 0; w < warps; ++w) {
    factors[w] = totals[w] == C(0) ? C(0) : math<C>::exp(tops[w] - highest);
    whole += totals[w] * factors[w];
  }
  for (int d = static_cast<int>(threadIdx.x); d < value_size; d += warps * lanes) {
    C sum = C(0);
    for (int w = 0; w < warps; ++w) sum += sums[w][d] * factors[w];
    out.at(b, h, i)[d] = static_cast<T>(whole == C(0) ? C(0) : sum / whole);
  }
}

template <class C, class T>
__global__ void __launch_bounds__(256) rotate_at(const __grid_constant__ host::rotary_block r, const T* x, T* y,
                                                 std::int64_t pairs, const __grid_constant__ positions p) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x, half = r.size / 2;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < pairs; n += step) {
    const std::int64_t i = n % half, t = n / half % r.times, b = n / half / r.times, first = p.of(b);
    const double angle = (r.first + static_cast<double>((first < 0 ? 0 : first) + t)) *
                         ::pow(r.base, -2 * static_cast<double>(i) / static_cast<double>(r.size));
    double sine, cosine;
    ::sincos(angle, &sine, &cosine);
    const C c = static_cast<C>(cosine), s = static_cast<C>(r.back ? -sine : sine);
    for (std::int64_t h = 0; h < r.others; ++h) {
      const std::int64_t at = r.at(b, t, h);
      const C u = static_cast<C>(x[at + r.one(i)]), v = static_cast<C>(x[at + r.two(i)]);
      y[at + r.one(i)] = static_cast<T>(u * c - v * s);
      y[at + r.two(i)] = static_cast<T>(v * c + u * s);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(256)
    count_positions(T* ids, std::int64_t all, std::int64_t times, std::int64_t first, const __grid_constant__ positions p) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < all; n += step) {
    const std::int64_t at = p.of(n / times);
    ids[n] = static_cast<T>((at < 0 ? 0 : at) + first + n % times);
  }
}

inline unsigned blocks_of(std::int64_t n) {
  const std::int64_t blocks = (n + 255) / 256;
  return static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
}

// --- launches: of the call itself, since what refuses a position is the context's -----------------------------------------------

template <class T>
void update(const kernel_arguments<T>& k, positions p, context& ctx) {
  const host::cache_blocks c = host::cache_blocks_of(k);
  p.tokens = c.rows;
  p.most = c.positions;
  if (k.in(0) != k.out() && k.size() > 0)
    check(cudaMemcpyAsync(k.out(), k.in(0), static_cast<std::size_t>(k.size()) * sizeof(T), cudaMemcpyDeviceToDevice,
                          ctx.stream),
          "cudaMemcpyAsync");
  const std::int64_t n = k.size(1);
  if (n > 0) write_rows<T><<<blocks_of(n), 256, 0, ctx.stream>>>(c, k.in(1), k.out(), p);
}

template <class T>
void attend(const kernel_arguments<T>& k, positions p, context& ctx) {
  using C = typename computes_in<T>::type;
  const auto x = host::attention_call_of<T, C>(k, operations::attention_inputs);
  const host::attention_block<T> out(k.out(), x.a, x.heads, x.queries, x.value_size);
  p.tokens = x.whole_queries;
  p.most = x.keys;
  const std::int64_t blocks = x.batch * x.heads * x.queries, size = x.size > x.value_size ? x.size : x.value_size;
  if (blocks == 0 || x.value_size == 0) return;
  const auto run = [&](auto kernel) { kernel<<<static_cast<unsigned>(blocks), warps * lanes, 0, ctx.stream>>>(x, out, p); };
  if (blocks > 2147483647)
    throw std::length_error(
        "shardwise: cached_attention: batch, heads and queries are together more than 2^31 - 1; give a "
        "prompt in pieces");
  if (size <= 64) run(&attend_cached<2, T, C>);
  else if (size <= 128) run(&attend_cached<4, T, C>);
  else if (size <= 256) run(&attend_cached<8, T, C>);
  else
    throw std::length_error(
        "shardwise: cached_attention: heads have " + std::to_string(size) +
        " numbers, and on devices at most 256; run it on host ranks, or take more heads of less numbers");
}

template <class T>
void rotate(const kernel_arguments<T>& k, positions p, context& ctx) {
  const host::rotary_block r = host::rotary_block_of(k);
  p.tokens = r.times;
  const std::int64_t pairs = r.batch * r.times * (r.size / 2);
  if (pairs > 0)
    rotate_at<typename computes_in<T>::type, T><<<blocks_of(pairs), 256, 0, ctx.stream>>>(r, k.in(0), k.out(), pairs, p);
}

template <class T>
void count(const kernel_arguments<T>& k, positions p, context& ctx) {
  p.tokens = k.origin(0, 1) + k.extent(1);
  p.most = host::most_position_id;
  const std::int64_t n = k.size();
  if (n > 0) count_positions<T><<<blocks_of(n), 256, 0, ctx.stream>>>(k.out(), n, k.extent(1), k.origin(0, 1), p);
}

template <const custom_operation& Op, class T>
void run(const call& c, context& ctx) {
  const host::operands<T> q = detail::operands_of<Op, T>(c);
  const kernel_arguments<T> k(c, q);
  const positions p{q.index, 0, -1, index_guard{ctx.fault, c.node}};
  if constexpr (&Op == &custom::cache_update) update(k, p, ctx);
  else if constexpr (&Op == &custom::cached_attention) attend(k, p, ctx);
  else if constexpr (&Op == &custom::rotary_embedding_at) rotate(k, p, ctx);
  else count(k, p, ctx);
  check_launch(Op.name);
}

template <const custom_operation& Op, class... T>
bool compile() {
  custom_launchers l = launchers_of<Op>();
  ((l.of[static_cast<int>(dtype_v<T>)] = &run<Op, T>), ...);
  compiled_customs().push_back(l);
  return true;
}

}  // namespace cache_detail

inline const bool cache_compiled =
    cache_detail::compile<custom::cache_update, float, double, bfloat16, float16, std::int32_t>() &&
    cache_detail::compile<custom::cached_attention, float, double, bfloat16, float16>() &&
    cache_detail::compile<custom::rotary_embedding_at, float, double, bfloat16, float16>() &&
    cache_detail::compile<custom::position_ids, std::int32_t>();

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

[[maybe_unused]] static const bool SHARDWISE_UNIQUE_NAME(__LINE__) = shardwise::cuda::cache_compiled;

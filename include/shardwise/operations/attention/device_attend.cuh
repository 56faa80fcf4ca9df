// SPDX-License-Identifier: Apache-2.0
// Attention on devices: a block for each tile of queries of a head, which goes through the keys in tiles of shared memory with the
// largest score and the sum of exponentials so far. Double in heads of up to 128 has kernels of its own (device_registers_forward.cuh), other
// types have where there are tensor cores (device_mma_forward.cuh); the kernel here takes the rest. The adjoint: device_backward.cuh.
// Price: no tensor cores. Nothing is compiled by including it: see device_elements.cuh.
#pragma once

#include <shardwise/operations/attention/device_backward.cuh>
#include <shardwise/operations/attention/device_registers_forward.cuh>
#include <shardwise/operations/attention/host.hpp>
#include <shardwise/runtime/cuda/device/custom.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

template <int Size, class T, class C>
__global__ void __launch_bounds__(threads)
    attend_tiles(const __grid_constant__ host::attention_call<T, C> x, const __grid_constant__ host::attention_block<T> out,
                 C* lse, double p, std::int64_t tiles) {
  constexpr int rows = tile_rows<C, Size>, each = rows / side, columns = Size / side;
  extern __shared__ __align__(16) unsigned char attention_shared[];
  C* const q = reinterpret_cast<C*>(attention_shared);
  const int size = static_cast<int>(x.size), value_size = static_cast<int>(x.value_size);
  C *const k = q + rows * (size + 1), *const v = k + rows * (size + 1), *const w = v + rows * (value_size + 1);
  const place at(x.heads, tiles, rows);
  const int tx = static_cast<int>(threadIdx.x) % side, ty = static_cast<int>(threadIdx.x) / side;
  const std::int64_t kh = at.h / x.group, last = at.first + rows < x.queries ? at.first + rows - 1 : x.queries - 1;
  host::attention_drops drops = drops_of(x, p);
  C o[each][columns], top[each], total[each];
  for (int r = 0; r < each; ++r) {
    top[r] = host::math<C>::lowest();
    total[r] = C(0);
    for (int c = 0; c < columns; ++c) o[r][c] = C(0);
  }
  stage<rows>(q, x.q, at.b, at.h, at.first, x.queries, size);
  const std::int64_t end = x.end_key(last);
  for (std::int64_t first_key = x.first_key(at.first); first_key < end; first_key += rows) {
    stage<rows>(k, x.k, at.b, kh, first_key, end, size);
    stage<rows>(v, x.v, at.b, kh, first_key, end, value_size);
    __syncthreads();
    C s[each][each];
    products(s, q, k, size, ty, tx);
    for (int r = 0; r < each; ++r) {
      const std::int64_t i = at.first + ty + side * r;
      C largest = host::math<C>::lowest(), sum = C(0);
      bool seen[each];
      for (int c = 0; c < each; ++c) {
        const std::int64_t j = first_key + tx + side * c;
        seen[c] = is_seen(x, at.b, at.h, i, j);
        if (!seen[c]) continue;
        s[r][c] = biased(x, at.b, at.h, i, j, s[r][c]);
        largest = largest > s[r][c] ? largest : s[r][c];
      }
      largest = row_max(largest);
      const C before = top[r];
      top[r] = before > largest ? before : largest;
      const C base = host::detail::finite_or_zero(top[r]);
      for (int c = 0; c < each; ++c) {
        const C weight = seen[c] ? math<C>::exp(s[r][c] - base) : C(0);
        sum += weight;
        w[(ty + side * r) * (rows + 1) + tx + side * c] =
            seen[c] ? weight * kept(x, drops, at.b, at.h, i, first_key + tx + side * c) : C(0);
      }
      const C factor = before == top[r] ? C(1) : math<C>::exp(before - base);
      total[r] = total[r] * factor + row_sum(sum);
      for (int c = 0; c < columns; ++c) o[r][c] *= factor;
    }
    __syncthreads();
    add_weighted<false>(o, w, v, rows, value_size, ty, tx);
    __syncthreads();
  }
  for (int r = 0; r < each; ++r) {
    const std::int64_t i = at.first + ty + side * r;
    const bool none = total[r] == C(0);
    for (int c = 0; c < columns; ++c) o[r][c] = none ? C(0) : o[r][c] / total[r];
    if (lse && tx == 0 && i < x.queries)
      lse[(at.b * x.heads + at.h) * x.queries + i] =
          none ? host::math<C>::lowest() : host::detail::finite_or_zero(top[r]) + math<C>::log(total[r]);
  }
  if (out.data) store(out, at.b, at.h, at.first, x.queries, o, value_size, ty, tx);
}

// lse: null where nobody wants it; so is out's data.
template <class C, class T>
void attend(const host::attention_call<T, C>& x, const host::attention_block<T>& out, C* lse, cudaStream_t stream) {
  if constexpr (std::is_same_v<T, double>)
    if (fits_registers(x)) return attend_by_registers(x, out, lse, stream);
  by_size<least_size<T>>(x.size > x.value_size ? x.size : x.value_size, [&](auto size) {
    constexpr int most = decltype(size)::value;
    const std::int64_t tiles = tiles_of(x.queries, tile_rows<C, most>), blocks = tiles * x.heads * x.batch;
    const int bytes = shared_bytes<C, most>(3, 1, x.size > x.value_size ? x.size : x.value_size);
    if (blocks == 0) return;
    allow_shared(&attend_tiles<most, T, C>, bytes);
    attend_tiles<most, T, C><<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(bytes), stream>>>(
        x, out, lse, x.a.dropout, tiles);
  });
}

struct attention_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const auto x = host::attention_call_of(k, operations::attention_inputs);
    attend(x, host::attention_block<T>(k.out(0), x.a, x.heads, x.queries, x.value_size), k.out(1), stream);
  }
};
struct attention_adjoint_launch {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const auto x = host::attention_call_of(k, operations::attention_adjoint_inputs);
    attend_back(x, host::attention_gradients<T>(k, x), stream);
  }
};

// All that a program may call: with each combination of a bias, a mask and dropout.
template <const custom_operation&... Op>
struct operation_list {};
using all_operations =
    operation_list<custom::attention, custom::attention_biased, custom::attention_marked, custom::attention_biased_marked,
                   custom::attention_dropped, custom::attention_biased_dropped, custom::attention_marked_dropped,
                   custom::attention_adjoint, custom::attention_adjoint_biased, custom::attention_adjoint_marked,
                   custom::attention_adjoint_biased_marked, custom::attention_adjoint_dropped,
                   custom::attention_adjoint_biased_dropped, custom::attention_adjoint_marked_dropped>;

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace cuda

template <>
struct device_kernel<custom::attention_delta> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const auto a = k.template attributes<attention_attributes>();
    const std::int64_t heads = k.extent(0, a.heads()), times = k.extent(0, a.time()), n = k.extent(0, 3);
    cuda::attention_detail::multiply_rows<T>(host::attention_block<const T>(k.in(0), a, heads, times, n),
                                             host::attention_block<const T>(k.in(1), a, heads, times, n), k.out(),
                                             k.extent(0, 0), heads, times, n, stream);
  }
};

template <>
struct device_kernel<custom::attention> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_biased> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_marked> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_biased_marked> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_dropped> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_biased_dropped> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_marked_dropped> : cuda::attention_detail::attention_launch {};
template <>
struct device_kernel<custom::attention_adjoint> : cuda::attention_detail::attention_adjoint_launch {};
template <>
struct device_kernel<custom::attention_adjoint_biased> : cuda::attention_detail::attention_adjoint_launch {};
template <>
struct device_kernel<custom::attention_adjoint_marked> : cuda::attention_detail::attention_adjoint_launch {};
template <>
struct device_kernel<custom::attention_adjoint_biased_marked> : cuda::attention_detail::attention_adjoint_launch {};
template <>
struct device_kernel<custom::attention_adjoint_dropped> : cuda::attention_detail::attention_adjoint_launch {};
template <>
struct device_kernel<custom::attention_adjoint_biased_dropped> : cuda::attention_detail::attention_adjoint_launch {};
template <>
struct device_kernel<custom::attention_adjoint_marked_dropped> : cuda::attention_detail::attention_adjoint_launch {};

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// Attention of two-byte elements on devices: statistics and delta are float, as the records say, all arithmetic is. By the registered
// library where it takes the call (attention_report says so), else by tensor cores (device_mma_forward.cuh: is_taken), else by the kernels
// that float has.
#pragma once

#include <shardwise/operations/attention/device_attend.cuh>
#include <shardwise/operations/attention/device_library.cuh>
#include <shardwise/operations/attention/device_mma_backward.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// A call's blocks of T, for what reads nothing but these; the float ones beside them are read from the call.
template <class T>
struct low_call {
  host::operands<T> q;
  host::result_pointers<T> results;
  const call& c;

  low_call(const call& given, int indices) : c(given) {
    for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
    if (indices >= 0) q.index = static_cast<const std::int32_t*>(c.p[indices]);
    if (c.results) results = host::pointers_of<T>(*c.results);
  }
  kernel_arguments<T> arguments() const { return {c, q, &results}; }
};

template <const custom_operation& Op, class T>
void run_low(const call& c, context& ctx) {
  constexpr int first =
      static_cast<int>(Op.record.results.value) == 2 ? operations::attention_inputs : operations::attention_adjoint_inputs;
  const low_call<T> low(c, Op.record.indices);
  const kernel_arguments<T> k = low.arguments();
  const auto x = host::attention_call_of<T, float>(k, first);
  if constexpr (first == operations::attention_inputs) {
    float* const lse = static_cast<float*>(c.results->p[1]);
    if (attend_by_library(x, k.out(0), lse, c.workspace, ctx.stream)) return;
    const host::attention_block<T> out(k.out(0), x.a, x.heads, x.queries, x.value_size);
    if (!attend_by_mma(x, out, lse, ctx.stream)) attend(x, out, lse, ctx.stream);
  } else {
    host::attention_gradients<T, float> g;
    g.lse = static_cast<const float*>(c.p[3]);
    g.delta = static_cast<const float*>(c.p[5]);
    g.dout = {k.in(4), x.a, x.heads, x.queries, x.value_size};
    g.dq = {k.out(0), x.a, x.heads, x.queries, x.size};
    g.dk = {k.out(1), x.a, x.key_heads, x.keys, x.size};
    g.dv = {k.out(2), x.a, x.key_heads, x.keys, x.value_size};
    if (attend_back_by_library(x, g, c.workspace, ctx.stream)) return;
    if (!attend_back_by_mma(x, g, ctx.stream)) attend_back(x, g, ctx.stream);
  }
  check_launch(Op.name);
}
template <class T>
void run_low_delta(const call& c, context& ctx) {
  const low_call<T> low(c, -1);
  const kernel_arguments<T> k = low.arguments();
  const auto a = k.template attributes<attention_attributes>();
  const std::int64_t heads = k.extent(0, a.heads()), times = k.extent(0, a.time()), n = k.extent(0, 3);
  multiply_rows<float>(host::attention_block<const T>(k.in(0), a, heads, times, n),
                       host::attention_block<const T>(k.in(1), a, heads, times, n), static_cast<float*>(c.p[result]),
                       k.extent(0, 0), heads, times, n, ctx.stream);
  check_launch("attention_delta");
}

}  // namespace attention_detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

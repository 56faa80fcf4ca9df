// SPDX-License-Identifier: Apache-2.0
// Attention in float on devices, of float and of two-byte elements: statistics and delta are float, as the records say, all arithmetic is.
// Of two bytes by the registered library where it takes the call (attention_report says so), else by tensor cores
// (device_mma_forward.cuh: is_taken), else without them. Factors of float are rounded to TF32 where the program allows it for its products
// (cuda_backend_tf32), else taken in two parts.
#pragma once

#include <shardwise/operations/attention/device_attend.cuh>
#include <shardwise/operations/attention/device_library.cuh>
#include <shardwise/operations/attention/device_mma_backward.cuh>
#include <shardwise/runtime/cuda/matmul_plans.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// A call's blocks of T, for what reads nothing but these; the float ones beside them are read from the call.
template <class T>
struct call_in_float {
  host::operands<T> q;
  host::result_pointers<T> results;
  const call& c;

  call_in_float(const call& given, int indices) : c(given) {
    for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
    if (indices >= 0) q.index = static_cast<const std::int32_t*>(c.p[indices]);
    if (c.results) results = host::pointers_of<T>(*c.results);
  }
  kernel_arguments<T> arguments() const { return {c, q, &results}; }
};

// The call and its adjoint, from which they begin in a custom call's blocks.
template <const custom_operation& Op>
inline constexpr bool is_adjoint = static_cast<int>(Op.record.results.value) != 2;
template <const custom_operation& Op, class T>
auto attention_of(const kernel_arguments<T>& k) {
  return host::attention_call_of<T, float>(
      k, is_adjoint<Op> ? operations::attention_adjoint_inputs : operations::attention_inputs);
}
template <class T>
host::attention_gradients<T, float> gradients_of(const call& c, const kernel_arguments<T>& k,
                                                 const host::attention_call<T, float>& x) {
  host::attention_gradients<T, float> g;
  g.lse = static_cast<const float*>(c.p[3]);
  g.delta = static_cast<const float*>(c.p[5]);
  g.dout = {k.in(4), x.a, x.heads, x.queries, x.value_size};
  g.dq = {k.out(0), x.a, x.heads, x.queries, x.size};
  g.dk = {k.out(1), x.a, x.key_heads, x.keys, x.size};
  g.dv = {k.out(2), x.a, x.key_heads, x.keys, x.value_size};
  return g;
}

template <const custom_operation& Op, class T>
void run_in_float(const call& c, context& ctx) {
  const call_in_float<T> of(c, Op.record.indices);
  const kernel_arguments<T> k = of.arguments();
  const auto x = attention_of<Op>(k);
  const bool tf32 = ctx.plans->rounds_to_tf32();
  if constexpr (!is_adjoint<Op>) {
    float* const lse = static_cast<float*>(c.results->p[1]);
    if constexpr (sizeof(T) == 2)
      if (attend_by_library(x, k.out(0), lse, c.workspace, ctx.stream)) return;
    const host::attention_block<T> out(k.out(0), x.a, x.heads, x.queries, x.value_size);
    if (!attend_by_mma(x, out, lse, tf32, ctx.stream)) attend(x, out, lse, ctx.stream);
  } else {
    const auto g = gradients_of(c, k, x);
    if constexpr (sizeof(T) == 2)
      if (attend_back_by_library(x, g, c.workspace, ctx.stream)) return;
    if (!attend_back_by_mma(x, g, tf32, ctx.stream)) attend_back(x, g, ctx.stream);
  }
  check_launch(Op.name);
}
// Before a capture: has a library's plan built, if one takes the call, and run once where it never was, on what lies there.
template <const custom_operation& Op, class T>
void prepare_in_float(const call& c, context& ctx) {
  const call_in_float<T> of(c, Op.record.indices);
  const kernel_arguments<T> k = of.arguments();
  const auto x = attention_of<Op>(k);
  if constexpr (!is_adjoint<Op>) {
    float* const lse = static_cast<float*>(c.results->p[1]);
    if (is_left_to_run(request_of(x, k.out(0), lse))) attend_by_library(x, k.out(0), lse, c.workspace, ctx.stream);
  } else {
    const auto g = gradients_of(c, k, x);
    if (is_left_to_run(request_of(x, g))) attend_back_by_library(x, g, c.workspace, ctx.stream);
  }
}
template <class T>
void run_delta_in_float(const call& c, context& ctx) {
  const call_in_float<T> of(c, -1);
  const kernel_arguments<T> k = of.arguments();
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

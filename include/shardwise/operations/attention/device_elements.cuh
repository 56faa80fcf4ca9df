// SPDX-License-Identifier: Apache-2.0
// SHARDWISE_DEVICE_ATTENTION(sw::bf16) at namespace scope in one CUDA source of a program compiles scaled_dot_product_attention and its
// adjoint for elements of these types, and of no other: a type's kernels are a few dozen. device.cuh does so for float and double,
// device_low.cuh for these and those of two bytes.
#pragma once

#include <shardwise/operations/attention/device_attend.cuh>
#include <shardwise/operations/attention/device_attend_low.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// Two-byte elements have float statistics beside them, which a device_kernel of one type cannot read.
template <class T, const custom_operation& Op, launcher Run, launcher Prepare>
bool compile_low() {
  custom_launchers l = launchers_of<Op>();
  l.of[static_cast<int>(dtype_v<T>)] = Run;
  l.prepare[static_cast<int>(dtype_v<T>)] = Prepare;
  compiled_customs().push_back(l);
  return true;
}
template <class T, const custom_operation&... Op>
bool compile(operation_list<Op...>) {
  if constexpr (is_low_precision(dtype_v<T>))
    return (compile_low<T, Op, &run_low<Op, T>, &prepare_low<Op, T>>() && ...) &&
           compile_low<T, custom::attention_delta, &run_low_delta<T>, nullptr>();
  else return (compile_custom<Op, T>() && ...) && compile_custom<custom::attention_delta, T>();
}

}  // namespace attention_detail

template <class... T>
inline const bool attention_compiled = (attention_detail::compile<T>(attention_detail::all_operations{}) && ...);

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

#define SHARDWISE_DEVICE_ATTENTION(...) \
  [[maybe_unused]] static const bool SHARDWISE_UNIQUE_NAME(__LINE__) = shardwise::cuda::attention_compiled<__VA_ARGS__>;

// SPDX-License-Identifier: Apache-2.0
// SHARDWISE_DEVICE_ATTENTION(sw::bf16) at namespace scope in one CUDA source of a program compiles scaled_dot_product_attention and its
// adjoint for elements of these types, and of no other: a type's kernels are a few dozen. device.cuh does so for float and double,
// device_low.cuh for these and those of two bytes.
#pragma once

#include <shardwise/operations/attention/device_attend.cuh>
#include <shardwise/operations/attention/device_attend_float.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace attention_detail {

// Two-byte elements have float statistics beside them, which a device_kernel of one type cannot read; nor does it know of TF32.
template <class T, const custom_operation& Op, launcher Run, launcher Prepare>
bool compile_in_float() {
  custom_launchers l = launchers_of<Op>();
  l.of[static_cast<int>(dtype_v<T>)] = Run;
  l.prepare[static_cast<int>(dtype_v<T>)] = Prepare;
  compiled_customs().push_back(l);
  return true;
}
template <class T, const custom_operation&... Op>
bool compile(operation_list<Op...>) {
  if constexpr (std::is_same_v<T, float>)
    return (compile_in_float<T, Op, &run_in_float<Op, T>, nullptr>() && ...) && compile_custom<custom::attention_delta, T>();
  else if constexpr (is_low_precision(dtype_v<T>))
    return (compile_in_float<T, Op, &run_in_float<Op, T>, &prepare_in_float<Op, T>>() && ...) &&
           compile_in_float<T, custom::attention_delta, &run_delta_in_float<T>, nullptr>();
  else return (compile_custom<Op, T>() && ...) && compile_custom<custom::attention_delta, T>();
}

}  // namespace attention_detail

template <class... T>
inline const bool attention_compiled = (attention_detail::compile<T>(attention_detail::all_operations{}) && ...);

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

#define SHARDWISE_DEVICE_ATTENTION(...) \
  [[maybe_unused]] static const bool SHARDWISE_UNIQUE_NAME(__LINE__) = shardwise::cuda::attention_compiled<__VA_ARGS__>;

// SPDX-License-Identifier: Apache-2.0
// takes_element: for which element types an operation has a device kernel.
#pragma once

#include <stdexcept>
#include <string>

#include <shardwise/operations/all.hpp>
#include <shardwise/runtime/cuda/device/kernel.cuh>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

// Operations whose device kernels are of elements of four and eight bytes alone. (An update's two-byte elements are its gradient's.)
inline constexpr op_code wide_only[] = {
    op_code::adam_term, op_code::adam_term_with, op_code::muon_direction, op_code::advance, op_code::adjust_scale,
};
constexpr bool is_wide_only(op_code op) {
  for (const op_code o : wide_only)
    if (o == op) return true;
  return false;
}

// Integers are moved and compared; they are added, subtracted and multiplied where Arithmetic says so, which a program asks for by
// SHARDWISE_DEVICE_ELEMENTS. Casts have launchers of their own.
constexpr bool has_device_kernel_of(op_code op, dtype type, bool arithmetic) {
  if (op == op_code::cast) return false;
  if (is_low_precision(type)) return !is_wide_only(op);
  if (is_floating(type)) return true;
  const bool adds = traits_of(op).elements == element_rule::number || op == op_code::fused;
  return rules::only_moves(op) || op == op_code::redistribute || is_comparison(op) ||
         (arithmetic && adds && type != dtype::boolean);
}
template <op_code Op, class T, bool Arithmetic = true>
inline constexpr bool takes_element = has_device_kernel_of(Op, dtype_v<T>, Arithmetic);

[[noreturn]] inline void refuse_element(op_code op, dtype type) {
  throw std::logic_error(std::string("shardwise: ") + name_of(op) + ": there is no device kernel for elements of type " +
                         name_of(type) + "; cast the operands to float before it, and the result back");
}

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// Kernels of users' own operations on devices. SHARDWISE_DEVICE_KERNELS(mine::swiglu, mine::swiglu_gate) at namespace scope
// in one CUDA source of the program compiles them for float and double, and for int32 where they only move; an executor asks
// for them when it is made, by the operation's address, or by that of what its program's image carries in the operation's place.
// So neither nvcc's device pass nor the other sources need to know which program calls them.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/runtime/cuda/device/map.cuh>
#include <shardwise/runtime/cuda/device/math.cuh>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/program/carried_operation.hpp>

namespace shardwise::inline v0_1 {

// Specialise it for what is not elementwise: `run(arguments, stream)` with kernel_arguments<T>, whose pointers are the device's,
// launches on the stream and neither waits nor allocates: the step is captured as one graph. One that takes a cuda::context& in the
// stream's place has the stream there, and how products are computed. One that has `prepare(arguments, context)` is called so before the
// call is captured, and whenever its extents have changed since: what a capture forbids is made there. It writes no more than run does.
template <const custom_operation& Op>
struct device_kernel;
template <const custom_operation& Op>
concept has_device_kernel = requires { sizeof(device_kernel<Op>); };

namespace cuda {

template <const custom_operation& Op, class T>
struct formula_functor {
  host::detail::formula_parameter<Op, T> f;
  template <class... X>
  __device__ T operator()(X... x) const {
    return f.template of<math<T>>(x...);
  }
};

namespace detail {

template <const custom_operation& Op, class T, std::size_t... K>
void map_formula(const call& c, context& ctx, std::index_sequence<K...>) {
  constexpr int count = 1 + static_cast<int>(sizeof...(K));
  const layout* const in[] = {&c.l[K]...};
  map(op_code::custom, host::broadcast_walk<count>(c.l[result], in),
      pointers<T, count>{{as<T>(c.p[result]), as<T>(c.p[K])...}},
      formula_functor<Op, computed_in<T>>{host::detail::formula_parameter<Op, computed_in<T>>(c)}, ctx);
}

template <class Kernel, class T>
void start(const kernel_arguments<T>& k, context& ctx) {
  if constexpr (requires { Kernel::run(k, ctx); }) Kernel::run(k, ctx);
  else Kernel::run(k, ctx.stream);
}

template <const custom_operation& Op, class T>
host::operands<T> operands_of(const call& c) {
  host::operands<T> q;
  for (int k = 0; k <= max_inputs; ++k) q.p[k] = as<T>(c.p[k]);
  constexpr int index = Op.record.indices;
  if constexpr (index >= 0) q.index = as<std::int32_t>(c.p[index]);
  q.has_scratch = static_cast<bool>(Op.record.device_scratch.value);
  if (q.has_scratch) q.scratch = as<T>(c.workspace);
  return q;
}

// Null: there is nothing to prepare.
template <const custom_operation& Op, class T>
constexpr launcher preparer_of() {
  if constexpr (!has_formula<Op> && has_device_kernel<Op>) {
    if constexpr (requires(const kernel_arguments<T>& k, context& ctx) { device_kernel<Op>::prepare(k, ctx); })
      return [](const call& c, context& ctx) {
        const host::operands<T> q = operands_of<Op, T>(c);
        device_kernel<Op>::prepare(kernel_arguments<T>(c, q), ctx);
      };
  }
  return nullptr;
}

template <const custom_operation& Op, class T>
void run_custom(const call& c, context& ctx) {
  if constexpr (has_formula<Op> && Op.record.results > 1) {
    static_assert(raise<problem::result_formula, shardwise::detail::custom_tag<Op>, T>::ok);
  } else if constexpr (has_formula<Op>) {
    map_formula<Op, T>(c, ctx, std::make_index_sequence<static_cast<std::size_t>(Op.operands.value)>{});
  } else if constexpr (has_device_kernel<Op>) {
    const host::operands<T> q = operands_of<Op, T>(c);
    if constexpr (Op.record.results > 1) {
      const host::result_pointers<T> several = host::pointers_of<T>(*c.results);
      start<device_kernel<Op>>(kernel_arguments<T>(c, q, &several), ctx);
    } else {
      start<device_kernel<Op>>(kernel_arguments<T>(c, q), ctx);
    }
    check_launch(Op.name);
  } else {
    static_assert(raise<problem::custom_kernel, shardwise::detail::custom_tag<Op>, T>::ok);
  }
}

}  // namespace detail

// The launchers of the operations that this program has compiled, by element type.
struct custom_launchers {
  const custom_operation* operation;  // as a graph that is made at run time names it
  const custom_operation* carried;    // as a program's image does: see program_image
  launcher of[dtypes] = {};
  launcher prepare[dtypes] = {};  // null where there is nothing to prepare
  bool are_of(const custom_operation& op, dtype type) const {
    return (operation == &op || carried == &op) && of[static_cast<int>(type)];
  }
};
template <const custom_operation& Op>
custom_launchers launchers_of() {
  return {&Op, &runtime::carried_operation<&Op>};
}
inline std::vector<custom_launchers>& compiled_customs() {
  static std::vector<custom_launchers> all;
  return all;
}

template <const custom_operation& Op, class... T>
bool compile_custom() {
  custom_launchers l = launchers_of<Op>();
  ((l.of[static_cast<int>(dtype_v<T>)] = &detail::run_custom<Op, T>), ...);
  ((l.prepare[static_cast<int>(dtype_v<T>)] = detail::preparer_of<Op, T>()), ...);
  compiled_customs().push_back(l);
  return true;
}
template <const custom_operation& Op>
bool compile_common() {
  if constexpr (Op.record.elements == element_rule::any) return compile_custom<Op, float, double, std::int32_t>();
  else return compile_custom<Op, float, double>();
}
template <const custom_operation&... Op>
inline const bool compiled = (compile_common<Op>() && ...);
template <class T, const custom_operation&... Op>
inline const bool compiled_of = (compile_custom<Op, T>() && ...);

// Price: a look-up, once for each operation of an executor and for each launch that is not replayed.
inline launcher custom_launcher(const custom_operation& op, dtype type) {
  for (const custom_launchers& l : compiled_customs())
    if (l.are_of(op, type)) return l.of[static_cast<int>(type)];
  const bool common = type == dtype::f32 || type == dtype::f64 || type == dtype::i32;
  throw std::logic_error(
      "shardwise: executor: the program calls the custom operation " + std::string(op.name) +
      ", of which no device kernel for its element type " + name_of(type) + " is compiled; write " +
      (common ? "SHARDWISE_DEVICE_KERNELS(" : std::string("SHARDWISE_DEVICE_KERNELS_OF(") + name_of(type) + ", ") +
      std::string(op.name) + ") at namespace scope in one CUDA source");
}

// What is to be called before a call is captured; null: nothing.
inline launcher custom_preparer(const custom_operation& op, dtype type) {
  for (const custom_launchers& l : compiled_customs())
    if (l.are_of(op, type)) return l.prepare[static_cast<int>(type)];
  return nullptr;
}

}  // namespace cuda

}  // namespace shardwise::inline v0_1

#define SHARDWISE_JOIN_NAMES(a, b) a##b
#define SHARDWISE_UNIQUE_NAME(line) SHARDWISE_JOIN_NAMES(shardwise_device_kernels_, line)
#define SHARDWISE_DEVICE_KERNELS(...) \
  [[maybe_unused]] static const bool SHARDWISE_UNIQUE_NAME(__LINE__) = shardwise::cuda::compiled<__VA_ARGS__>;
// The same of elements of one more type: SHARDWISE_DEVICE_KERNELS_OF(sw::bf16, mine::swiglu). A formula computes in float on
// two-byte elements and is rounded once; a device_kernel gets the elements as they are.
#define SHARDWISE_DEVICE_KERNELS_OF(...) \
  [[maybe_unused]] static const bool SHARDWISE_UNIQUE_NAME(__LINE__) = shardwise::cuda::compiled_of<__VA_ARGS__>;

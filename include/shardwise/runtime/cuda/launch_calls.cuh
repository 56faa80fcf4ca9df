// SPDX-License-Identifier: Apache-2.0
// launch_calls: which device kernel runs a call of a program.
#pragma once

#include <stdexcept>
#include <string>

#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/cuda/kernels.cuh>
#include <shardwise/runtime/program/lowered.hpp>

namespace shardwise::inline v0_1::cuda {

// The graph whose expressions are kernels of their own; without any, nvcc's device pass need not know it.
template <class Step, bool Has = program_traits<Step>::has_expressions>
struct expression_source {
  static constexpr graph<1, 1> value{};
};
template <class Step>
struct expression_source<Step, true> {
  static constexpr const auto& value = Step::program;
};

template <class Step>
launcher custom_of_node(int id) {
  const auto& g = runtime::program_source<Step>::program;
  return custom_launcher(*custom_of(g, g.nodes[id]), g.spec_of(id).type);
}
// Throws if the program calls a custom operation of which no kernel is compiled.
template <class Step>
void check_customs() {
  const auto& g = runtime::program_source<Step>::program;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::custom) custom_of_node<Step>(i);
}

// Of a program of elements T those of T and int32, and of float beside elements of two bytes; others where a source asked for them.
template <class T>
element_launchers launchers_of(dtype type) {
  if (type == dtype_v<T>) return element_launchers::of<T>();
  if (type == dtype::i32) return element_launchers::of<std::int32_t>();
  if constexpr (is_low_precision(dtype_v<T>))
    if (type == dtype::f32) return element_launchers::of<float>();
  return element_launchers::beside(type);
}
inline std::string no_kernel(op_code op, dtype type, bool compiled_none) {
  const std::string what = std::string("shardwise: ") + name_of(op);
  if (op == op_code::opaque) return what + ": a function of the user's runs on the host only";
  if (compiled_none)
    return what + ": no device kernels of " + name_of(type) + " are compiled; write SHARDWISE_DEVICE_ELEMENTS(" +
           name_of(type) + "); at namespace scope of one CUDA source";
  return what + ": there is no device kernel of " + name_of(type) + "; cast the operands to float before it";
}

// Launches a call that computes, or `count` neighbours that go out together (passes::starts_together).
template <class Step>
void launch_calls(const call* calls, std::size_t count, context& ctx, int rank) {
  using element = typename program_traits<Step>::element;
  const auto& g = runtime::program_source<Step>::program;
  const call& c = calls[0];
  const op_code op = g.nodes[c.node].op;
  if (op == op_code::custom) return custom_of_node<Step>(c.node)(c, ctx);
  const dtype type = kernel_type(g, g.nodes[c.node]);
  if (const int then = g.nodes[c.node].expression; then >= 0 && count == 1)
    return followed_launchers<expression_source<Step>>::of(op, then, type)(c, ctx);
  const element_launchers table = launchers_of<element>(type);
  if (count > 1 && table.all && table.all[static_cast<int>(op)])  // what they add is theirs
    return table.all[static_cast<int>(op)](calls, count, ctx);
  const launcher f = table.one ? table.one[static_cast<int>(op)] : nullptr;
  if (!f || count > 1)
    throw std::logic_error(no_kernel(op, type, table.one == nullptr) + " (" + runtime::place_of(g, c.node, rank) + ")");
  f(c, ctx);
}

}  // namespace shardwise::inline v0_1::cuda

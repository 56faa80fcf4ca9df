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

// Launches a call that computes, or `count` neighbours that go out together (passes::starts_together).
template <class Step>
void launch_calls(const call* calls, std::size_t count, context& ctx, int rank) {
  using element = typename program_traits<Step>::element;
  const auto& g = runtime::program_source<Step>::program;
  const call& c = calls[0];
  const op_code op = g.nodes[c.node].op;
  const bool integers = g.spec_of(makes_indices(op) ? g.nodes[c.node].in[0] : c.node).type == dtype::i32;
  if (count > 1) return launchers<element>::all[static_cast<int>(op)](calls, count, ctx);  // what they add is theirs
  if (op == op_code::custom) return custom_of_node<Step>(c.node)(c, ctx);
  if (const int then = g.nodes[c.node].expression; then >= 0)
    return followed_launchers<expression_source<Step>, element>::of(op, then)(c, ctx);
  const launcher f = integers ? launcher_of<std::int32_t>(op) : launcher_of<element>(op);
  if (!f)
    throw std::logic_error(
        std::string("shardwise: ") + name_of(op) +
        (op == op_code::opaque ? ": a function of the user's runs on the host only" : ": there is no device kernel") + " (" +
        runtime::place_of(g, c.node, rank) + ")");
  f(c, ctx);
}

}  // namespace shardwise::inline v0_1::cuda

// SPDX-License-Identifier: Apache-2.0
// launch_calls: which device kernel, or collective, runs a call of a program.
#pragma once

#include <stdexcept>
#include <string>

#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/cuda/compiled_elements.cuh>
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

// What launches node `id` alone. Throws, with the node's place, where no kernel of it is compiled.
template <class Step>
launcher launcher_of_node(int id, int rank) {
  const auto& g = runtime::tables_of<Step>::image();
  const node& n = g.nodes[id];
  const dtype type = kernel_type(g, n);
  if (n.op == op_code::custom) return custom_launcher(*custom_of(g, n), type);
  if (n.expression >= 0) return followed_launchers<expression_source<Step>>::of(n.op, n.expression, type);
  const dtype from = n.inputs > 0 ? g.spec_of(n.in[0]).type : type;
  if (const launcher f = n.op == op_code::cast ? compiled_cast<Step>(from, type) : compiled_launcher<Step>(n.op, type))
    return f;
  const std::string place = runtime::place_of(g, id, rank);
  if (!compiles_element<Step>(type)) refuse_uncompiled(name_of(n.op), type, place);
  if (n.op == op_code::cast) refuse_uncompiled(name_of(n.op), from, place);
  if (!is_floating(type) && has_device_kernel_of(n.op, type, true)) refuse_uncompiled(name_of(n.op), type, place);
  throw std::logic_error(std::string("shardwise: ") + name_of(n.op) +
                         (is_low_precision(type)
                              ? std::string(": there is no device kernel for elements of type ") + name_of(type) +
                                    "; cast the operands to float before it, and the result back"
                              : std::string(": there is no device kernel")) +
                         " (" + place + ")");
}

// Throws if the program has a call that no compiled kernel or collective runs.
template <class Step, class Calls>
void check_compiled(const Calls& calls, int rank) {
  const auto& g = runtime::tables_of<Step>::image();
  for (const call& c : calls) {
    if (g.nodes[c.node].op == op_code::opaque) continue;  // on the host: see host_calls.hpp
    if (!communicates(c.kind)) launcher_of_node<Step>(c.node, rank);
    else if (const dtype type = g.spec_of(c.node).type; !compiles_element<Step>(type))
      refuse_uncompiled("a collective", type, runtime::place_of(g, c.node, rank));
  }
}

// Makes what a call needs and a capture forbids.
template <class Step>
void prepare_call(const call& c, context& ctx) {
  if (communicates(c.kind)) return;
  const auto& g = runtime::tables_of<Step>::image();
  const node& n = g.nodes[c.node];
  if (n.op != op_code::custom) return;
  if (const launcher f = custom_preparer(*custom_of(g, n), kernel_type(g, n))) f(c, ctx);
}

// The collectives on elements of a call's type.
template <class Step>
struct collectives_of_call {
  const collective_functions& operator()(const call& c) const { return *compiled_collectives<Step>(c.type[result]); }
};

// Launches a call that computes, or `count` neighbours that go out together (passes::starts_together).
template <class Step>
void launch_calls(const call* calls, std::size_t count, context& ctx, int rank) {
  const auto& g = runtime::tables_of<Step>::image();
  const call& c = calls[0];
  if (count == 1) return launcher_of_node<Step>(c.node, rank)(c, ctx);
  const node& n = g.nodes[c.node];
  if (n.op == op_code::cast) return compiled_casts<Step>(g.spec_of(n.in[0]).type, g.specs[n.spec].type)(calls, count, ctx);
  compiled_neighbours<Step>(n.op, kernel_type(g, n))(calls, count, ctx);  // the expressions behind them are theirs
}

// Enqueues a collective, or `count` of a batch; the bytes that this rank sends.
template <class Step>
std::int64_t communicate_calls(const call* calls, std::size_t count, context& ctx, ncclComm_t group,
                               const peer_slots* slots) {
  // qualified: looked for by its arguments, it would have nvcc's device pass complete the program
  return cuda::communicate(collectives_of_call<Step>{}, calls, count, ctx, group, slots);
}
// Words of slots that small all-reduces among `count` calls need, which go out together.
template <class Step>
std::int64_t one_shot_words(const call* calls, std::size_t count) {
  return one_shot::words_of(collectives_of_call<Step>{}, calls, count);
}

}  // namespace shardwise::inline v0_1::cuda

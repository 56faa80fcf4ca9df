// SPDX-License-Identifier: Apache-2.0
// with_parameters_of: a program whose parameters and buffers are those of another program's executor, where they lie there.
#pragma once

#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/pass/memory/memory_breakdown.hpp>
#include <shardwise/runtime/program/copied_parameters.hpp>

namespace shardwise::inline v0_1 {

namespace runtime {

namespace detail {

// Like copy_parameters' difference, in the words of this header.
template <class A, class B, bool Buffers>
constexpr bool say_unshared() {
  constexpr parameter_difference found = differing_parameter<A, B, Buffers, false>();
  constexpr bool placed = found.what == problem::copied_parameters_placed || found.what == problem::copied_buffers_placed;
  constexpr problem what = found.what == problem::none ? problem::none
                           : placed                    ? problem::shared_parameters_placed
                                                       : problem::shared_parameters_differ;
  return say_difference<A, B, Buffers, what, found.at, found.node_a, found.node_b>();
}

// What stands in the way in the program itself: that it writes, or that a pass has laid parameters side by side.
template <class Program>
constexpr problem sharing_problem() {
  const auto& g = Program::program;
  const auto& plan = Program::memory::value;
  for (int i = 0; i < g.node_count; ++i) {
    const op_code op = g.nodes[i].op;
    if ((op == op_code::param || op == op_code::module_buffer) && plan.owner[i] != i)
      return problem::shared_parameters_placed;
    if (!is_update(op) && op != op_code::copy_) continue;
    const op_code written = g.nodes[plan.owner[g.nodes[i].in[0]]].op;
    if (written == op_code::param || written == op_code::module_buffer) return problem::shared_parameters_written;
  }
  return problem::none;
}

}  // namespace detail

// `ok` is true; a program that cannot have Of's parameters where they lie is a sentence.
template <class Program, class Of>
struct checked_sharing {
#if SHARDWISE_DEVICE_PASS
  static constexpr bool ok = true;
#else
  static constexpr bool ok = [] {
    constexpr problem own = detail::sharing_problem<Program>();
    if constexpr (!std::is_same_v<typename Program::mesh_type, typename Of::mesh_type>)
      return raise<problem::shared_parameters_mesh, typename Program::mesh_type, typename Of::mesh_type>::ok;
    else if constexpr (own != problem::none) return raise<own, typename Program::mesh_type>::ok;
    else if constexpr (!detail::say_unshared<Program, Of, false>()) return false;
    else return detail::say_unshared<Program, Of, true>();
  }();
#endif
};

}  // namespace runtime

// Program, a forward_step as a rule, with the parameters and buffers of an executor of Of, a train_step of the same model, plan and
// mesh: they are read where they lie there, so nothing is copied and peak_bytes has none of them. Its executor is given the other one:
// executor<with_parameters_of<judge, step>> test(rank, run) evaluates what `run`, an executor<step>, has become, between any of its runs:
// on a device, too, where runs are done in the order in which they were queued and nothing has to be waited for.
// Checked while compiling: the same names, shapes, element types and placements, and that Program writes into none of them. `run` has
// its values before, stays where it is and outlives `test`; what is set on `test` is set on `run`.
template <class Program, class Of>
struct with_parameters_of : Program {
  using parameters_of = Of;
  using lone_program = Program;

  struct graph_source {
    static constexpr const auto& value = Program::program;
    static constexpr bool parameters_elsewhere = true;
  };
  using memory = passes::planned_memory<typename Program::backend, graph_source>;
  static constexpr std::int64_t peak_bytes = memory::value.peak;
  using memory_use = passes::memory_breakdown_of<memory, graph_source>;
#if !SHARDWISE_DEVICE_PASS
  static_assert(runtime::checked_sharing<Program, Of>::ok);
#endif
};

template <class Program, class Of>
struct program_traits<with_parameters_of<Program, Of>> : program_traits<Program> {};

}  // namespace shardwise::inline v0_1

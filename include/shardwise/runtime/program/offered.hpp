// SPDX-License-Identifier: Apache-2.0
// program: what a program offers to an executor, written down once. Models: train_step, forward_step, function_step, gradient_step,
// the phases of an iterated step. Executors ask for it by checked_program, which names the member that is missing.
#pragma once

#include <concepts>
#include <cstdint>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/dyn.hpp>

namespace shardwise::inline v0_1 {

// The members of a program, all constants of its type, as types, so that an error can name the one that is missing. (Mesh and
// element type: program_traits.)
namespace program_member {
struct program;          // the final graph: nodes, specs, scopes, outputs
struct parameters;       // .item[i]: scope, name and initial values of the parameters, and behind them of the buffers
struct parameter_total;  // int: how many parameters
struct buffer_total;     // int: how many buffers of modules
struct memory;           // memory::value: offsets and lifetimes of all values in one arena
struct peak_bytes;       // std::int64_t: the arena's size
struct
    dyn_bound;  // dyn_bounds: those of the run-time sizes, none if all extents are static; dyn_not_empty: which may not be 0, as bits
struct traffic;       // .order_hash: which collectives, in which order; ranks compare it before they run
struct output_names;  // output_names::find(name): the number of the output that the task calls so, -1: none
}  // namespace program_member

template <class Member>
  requires(detail::begins_at(spelling<Member>(), 0, "shardwise::program_member::"))
struct fact<Member> : detail::type_fact<"program_member", Member> {};

namespace detail {

template <class P>
concept offers_graph = requires {
  P::program.node_count;
  P::program.nodes[0];
  P::program.outputs[0];
  P::program.spec_of(0);
};
template <class P>
concept offers_parameters = requires {
  P::parameters.item[0].scope;
  P::parameters.item[0].name;
  P::parameters.item[0].kind;
  P::parameters.item[0].scale;
};
template <class P>
concept offers_parameter_total = requires {
  { P::parameter_total } -> std::convertible_to<int>;
};
template <class P>
concept offers_buffer_total = requires {
  { P::buffer_total } -> std::convertible_to<int>;
};
template <class P>
concept offers_memory = requires {
  P::memory::value.offset[0];
  P::memory::value.bytes[0];
  P::memory::value.workspace;
};
template <class P>
concept offers_peak_bytes = requires {
  { P::peak_bytes } -> std::convertible_to<std::int64_t>;
};
template <class P>
concept offers_dyn_bound = requires {
  { P::dyn_bound } -> std::convertible_to<dyn_bounds>;
  { P::dyn_not_empty } -> std::convertible_to<unsigned>;
};
template <class P>
concept offers_traffic = requires {
  { P::traffic.order_hash } -> std::convertible_to<std::uint64_t>;
};
template <class P>
concept offers_output_names = requires {
  { P::output_names::find("") } -> std::convertible_to<int>;
};

template <bool Has, class Program, class Member>
inline constexpr bool program_has = raise<(Has ? problem::none : problem::program_member_missing), Program, Member>::ok;

}  // namespace detail

template <class P>
concept executable_program = detail::offers_graph<P> && detail::offers_parameters<P> && detail::offers_parameter_total<P> &&
                             detail::offers_buffer_total<P> && detail::offers_memory<P> && detail::offers_peak_bytes<P> &&
                             detail::offers_dyn_bound<P> && detail::offers_traffic<P> && detail::offers_output_names<P>;

// `ok` is true; a member that Program lacks is a sentence with its name.
template <class Program>
struct checked_program {
  static constexpr bool ok =
      detail::program_has<detail::offers_graph<Program>, Program, program_member::program> &&
      detail::program_has<detail::offers_parameters<Program>, Program, program_member::parameters> &&
      detail::program_has<detail::offers_parameter_total<Program>, Program, program_member::parameter_total> &&
      detail::program_has<detail::offers_buffer_total<Program>, Program, program_member::buffer_total> &&
      detail::program_has<detail::offers_memory<Program>, Program, program_member::memory> &&
      detail::program_has<detail::offers_peak_bytes<Program>, Program, program_member::peak_bytes> &&
      detail::program_has<detail::offers_dyn_bound<Program>, Program, program_member::dyn_bound> &&
      detail::program_has<detail::offers_traffic<Program>, Program, program_member::traffic> &&
      detail::program_has<detail::offers_output_names<Program>, Program, program_member::output_names>;
};
template <executable_program Program>
struct checked_program<Program> {
  static constexpr bool ok = true;
};

}  // namespace shardwise::inline v0_1

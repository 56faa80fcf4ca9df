// SPDX-License-Identifier: Apache-2.0
// program_image: what a run reads of a program's graph, as a constant of its own, so that an object holds nothing else of it.
#pragma once

#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/runtime/program/carried_operation.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/vocabulary/parameter_info.hpp>

namespace shardwise::inline v0_1::runtime {

// What an executor reads of a program. Its kernels do not depend on the program, so in nvcc's device pass it reads an
// empty one and the program's constants are not evaluated there.
#if SHARDWISE_DEVICE_PASS
template <class Step>
struct program_source {
  static constexpr graph<1, 1> program{};
  static constexpr struct {
    parameter_info item[1]{};
  } parameters{};
  static constexpr int parameter_total = 0, buffer_total = 0;
  static constexpr std::int64_t peak_bytes = 0;
  static constexpr dyn_bounds dyn_bound{};
  static constexpr unsigned dyn_not_empty = 0;
  struct memory {
    static constexpr passes::memory_plan<1> value{};
  };
  static constexpr struct {
    std::uint64_t order_hash = 0;
  } traffic{};
};
#else
template <class Step>
using program_source = Step;
#endif

// Law: node for node the program's graph; its own operations are carried_operation's, distinct where the program's are.
// A graph that is read at run time stands in the object with all that it points to: of users' operations (attention is one) rules and
// adjoints, of those all rules of the library. Of a 12-layer GPT's step at -O0 that was 29 % of the machine code and a tenth of g++'s time.
// A graph that is made at run time is its own image.
template <class Step>
struct program_image {
  static constexpr const auto& value = program_source<Step>::program;
};
template <class Step>
  requires requires { typename std::integral_constant<int, program_source<Step>::program.node_count>; }
struct program_image<Step> {
  using source = program_source<Step>;
  using from_type = std::remove_cvref_t<decltype(source::program)>;
  using type = graph<(source::program.node_count > 0 ? source::program.node_count : 1),
                     (source::program.spec_count > 0 ? source::program.spec_count : 1),
                     (source::program.scope_count > 0 ? source::program.scope_count : 1), from_type::output_capacity>;

  static constexpr int operations = source::program.custom_count;
  template <int K>
  static constexpr const custom_operation* carried = &carried_operation<source::program.customs[K]>;

  template <int... K>
  static constexpr void carry(type& r, std::integer_sequence<int, K...>) {
    ((r.customs[K] = carried<K>), ...);
  }
  // Not in a closure with the pack: that costs nvcc's front end eight kilobytes a node.
  static constexpr auto value = [] {
    type r(typename type::unfilled{});
    copy_into(r, source::program);
    carry(r, std::make_integer_sequence<int, operations>{});
    return r;
  }();
};

// The program's parameters and buffers, without the trace that their table is part of.
template <class Step>
inline constexpr auto parameters_of = program_source<Step>::parameters;

}  // namespace shardwise::inline v0_1::runtime

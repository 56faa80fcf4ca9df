// SPDX-License-Identifier: Apache-2.0
// program_leaves: a program's parameters, buffers, states, inputs and outputs by name and by number (program_tables), and by type.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/program/program_tables.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1::runtime {

template <class Step>
class program_leaves {
 public:
  using source = program_source<Step>;
  using element = typename program_traits<Step>::element;

  // For constants. What runs reads its image: whatever reads the program itself at run time has all of it in its object.
  static constexpr const auto& program() { return source::program; }
  static constexpr decltype(auto) image() { return tables_of<Step>::image(); }
  static constexpr decltype(auto) plan() { return tables_of<Step>::plan(); }

  static constexpr int parameter_count() { return source::parameter_total; }
  static std::string parameter_name(int index) { return tables_of<Step>::get().parameter_name(index); }
  static int parameter_index(std::string_view name) { return tables_of<Step>::get().parameter_index(name); }
  // Of a parameter of a flat group: as it is used.
  static const spec& parameter_spec(int index) { return spec_of(find(op_code::param, index)); }

  // Buffers of modules, counted by themselves.
  static constexpr int buffer_count() { return source::buffer_total; }
  static std::string buffer_name(int index) { return tables_of<Step>::get().buffer_name(index); }
  static int buffer_index(std::string_view name) { return tables_of<Step>::get().buffer_index(name); }
  static const spec& buffer_spec(int index) { return spec_of(find(op_code::module_buffer, index)); }

  // Of a node, or of a parameter in a flat group: see flat_parts.
  static constexpr const flat_parts& flat = flat_parts_of<source>;
  static bool is_part(int id) { return tables_of<Step>::get().is_part(id); }
  static const spec& spec_of(int id) { return tables_of<Step>::get().spec_of(id); }
  static int node_of(int id) { return tables_of<Step>::get().node_of(id); }

  static int state_node(std::string_view name, moment m) { return tables_of<Step>::get().state_node(name, m); }
  static int find(op_code op, int index) { return tables_of<Step>::get().find(op, index); }

  // The outputs that the task has named, by number; a name that is none of theirs does not compile, or throws.
#if SHARDWISE_DEVICE_PASS
  template <fixed_string Name>
  static constexpr int output_number() {
    return 0;
  }
#else
  template <fixed_string Name>
  static constexpr int output_number() {
    return source::output_names::template at<Name>();
  }
#endif
  static int output_number(std::string_view name) {
#if SHARDWISE_DEVICE_PASS
    return static_cast<int>(name.size());
#else
    using names = typename source::output_names;
    if (const int k = names::find(name); k >= 0) return k;
    std::string known;
    for (int k = 0; k < names::count; ++k) known += (k ? ", '" : "'") + std::string(names::name(k)) + "'";
    throw std::out_of_range(
        "shardwise: output: the program has no output named '" + std::string(name) + "'; " +
        (known.empty() ? "its task names none: return outputs(named<...>(loss), ...)" : "it has " + known));
#endif
  }
  // The element type of output Number.
  template <int Number>
  struct output_element {
#if SHARDWISE_DEVICE_PASS
    using type = element;
#else
    using type = element_t<source::program.spec_of(source::program.outputs[Number < 0 ? 0 : Number]).type>;
#endif
  };

  static int input_count() { return tables_of<Step>::get().input_count(); }
  static bool writes_first(int id, const int* coordinate) { return tables_of<Step>::get().writes_first(id, coordinate); }

 protected:
  // A parameter, or a buffer, by its place in the program's table: the parameters, then the buffers.
  static constexpr int table_count() { return source::parameter_total + source::buffer_total; }
  static std::string table_name(int at) { return tables_of<Step>::get().table_name(at); }
  static int table_node(int at) { return tables_of<Step>::get().table_node(at); }
  static int table_place(op_code op, int index) { return op == op_code::module_buffer ? parameter_count() + index : index; }
};

}  // namespace shardwise::inline v0_1::runtime

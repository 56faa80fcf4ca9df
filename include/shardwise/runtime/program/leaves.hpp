// SPDX-License-Identifier: Apache-2.0
// program_leaves: a program's parameters, buffers, states, inputs and outputs by name and by number; what depends on no rank.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwise/graph/kept_gradients.hpp>
#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/program/flat_parts.hpp>
#include <shardwise/runtime/program/image.hpp>
#include <shardwise/runtime/program/names.hpp>
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
  static constexpr const auto& image() { return program_image<Step>::value; }
  static constexpr const auto& plan() { return source::memory::value; }

  static constexpr int parameter_count() { return source::parameter_total; }
  static std::string parameter_name(int index) { return table_name(index); }
  static int parameter_index(std::string_view name) {
    for (int i = 0; i < parameter_count(); ++i)
      if (parameter_name(i) == name) return i;
    refuse_name("parameter", name, parameter_count(), parameter_name);
  }
  // Of a parameter of a flat group: as it is used.
  static const spec& parameter_spec(int index) { return spec_of(find(op_code::param, index)); }

  // Buffers of modules, counted by themselves.
  static constexpr int buffer_count() { return source::buffer_total; }
  static std::string buffer_name(int index) { return table_name(source::parameter_total + index); }
  static int buffer_index(std::string_view name) {
    for (int i = 0; i < buffer_count(); ++i)
      if (buffer_name(i) == name) return i;
    refuse_name("buffer", name, buffer_count(), buffer_name);
  }
  static const spec& buffer_spec(int index) { return image().spec_of(find(op_code::module_buffer, index)); }

  // Of a node, or of a parameter in a flat group: see flat_parts.
  using flat = flat_parts<source>;
  static bool is_part(int id) { return flat::is_part(image(), id); }
  static const spec& spec_of(int id) { return flat::spec_of(image(), id); }
  static int node_of(int id) { return flat::node_of(image(), id); }

  // The node of a state that the optimizer keeps for a parameter.
  static int state_node(std::string_view name, moment m) {
    const int parameter = parameter_index(name);
    if (flat::is_flat(parameter))
      if (const int id = flat::state_id(image(), parameter, static_cast<std::int64_t>(m)); id >= 0) return id;
    bool kept = false;
    for (int i = 0; i < image().node_count; ++i) {
      if (image().nodes[i].op != op_code::state) continue;
      const auto of = attributes_of<leaf_attributes>(image().nodes[i].a);
      if (of.parameter == parameter && of.which == static_cast<std::int64_t>(m)) return i;
      kept = kept || (of.parameter == parameter && of.which != kept_gradient);
    }
    refuse_state(name, m, kept);
  }

  static int find(op_code op, int index) {
    if (op == op_code::param && index >= 0 && index < parameter_count() && flat::is_flat(index))
      return flat::parameter_id(image(), index);
    for (int i = 0; i < image().node_count; ++i)
      if (image().nodes[i].op == op && attributes_of<leaf_attributes>(image().nodes[i].a).index == index) return i;
    int count = 0;
    for (int i = 0; i < image().node_count; ++i) count += image().nodes[i].op == op ? 1 : 0;
    const char* const what = op == op_code::param ? "parameter" : op == op_code::module_buffer ? "buffer" : name_of(op);
    throw std::out_of_range(no_such(what, index, count));
  }
  // "shardwise: input number 2 is asked for; the program has 2 inputs, counted from 0: give 0..1"
  static std::string no_such(const std::string& what, int index, int count) {
    return "shardwise: " + what + " number " + std::to_string(index) + " is asked for; the program has " +
           (count == 0 ? "none"
                       : std::to_string(count) + " " + what + (count == 1 ? "" : "s") + ", counted from 0: give 0.." +
                             std::to_string(count - 1));
  }

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

  static constexpr int input_count() {
    int n = 0;
    for (int i = 0; i < image().node_count; ++i)
      if (image().nodes[i].op == op_code::input)
        if (const std::int64_t index = attributes_of<leaf_attributes>(image().nodes[i].a).index; index >= n)
          n = static_cast<int>(index) + 1;
    return n;
  }

  // Of equal copies of a node's value, whether this rank's is the one to write.
  static bool writes_first(int id, const int* coordinate) {
    bool first = true;
    const spec& s = image().spec_of(node_of(id));
    for (int a = 0; a < s.axes; ++a) first = first && (s.place[a].is_shard() || coordinate[a] == 0);
    return first;
  }

 protected:
  // A parameter, or a buffer, by its place in the program's table: the parameters, then the buffers.
  static constexpr int table_count() { return source::parameter_total + source::buffer_total; }
  static std::string table_name(int at) {
    const auto& p = parameters_of<Step>.item[at];
    const std::string path = module_path(image(), p.scope);
    return path.empty() ? p.name : path + "." + p.name;
  }
  static int table_node(int at) {
    return at < parameter_count() ? find(op_code::param, at) : find(op_code::module_buffer, at - parameter_count());
  }
  static int table_place(op_code op, int index) { return op == op_code::module_buffer ? parameter_count() + index : index; }
};

}  // namespace shardwise::inline v0_1::runtime

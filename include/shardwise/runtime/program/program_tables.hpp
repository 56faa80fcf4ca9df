// SPDX-License-Identifier: Apache-2.0
// program_tables: what a run reads of its program, by pointers: the same type for every program.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwise/graph/kept_gradients.hpp>
#include <shardwise/graph/text/render.hpp>
#include <shardwise/runtime/program/flat_parts.hpp>
#include <shardwise/runtime/program/image.hpp>
#include <shardwise/runtime/program/names.hpp>

namespace shardwise::inline v0_1::runtime {

// A graph without its capacities, which are part of its type: what is written for any graph is compiled once for all programs through
// this one. Its members are those of `graph`; it owns nothing.
struct graph_view {
  const node* nodes = nullptr;
  const spec* specs = nullptr;
  const scope* scopes = nullptr;
  const opaque_operation* const* functions = nullptr;
  const custom_operation* const* customs = nullptr;
  const expression* expressions = nullptr;
  const int* outputs = nullptr;
  int node_count = 0, spec_count = 0, scope_count = 0, sites = 0, custom_count = 0, output_count = 0;

  constexpr const spec& spec_of(int id) const { return specs[nodes[id].spec]; }
};
template <class Graph>
constexpr graph_view view_of(const Graph& g) {
  return {g.nodes,      g.specs,      g.scopes,      g.functions, g.customs,      g.expressions, g.outputs,
          g.node_count, g.spec_count, g.scope_count, g.sites,     g.custom_count, g.output_count};
}

// The same of a memory_plan.
struct plan_view {
  const std::int64_t* offset = nullptr;
  const std::int64_t* bytes = nullptr;
  const std::int32_t* owner = nullptr;
  const std::int32_t* last_use = nullptr;
  std::int64_t workspace = 0, persistent_end = 0, peak = 0;
};
template <class Plan>
constexpr plan_view view_of_plan(const Plan& p) {
  return {.offset = p.offset,
          .bytes = p.bytes,
          .owner = p.owner,
          .last_use = p.last_use,
          .workspace = p.workspace,
          .persistent_end = p.persistent_end,
          .peak = p.peak};
}

// Parameters, buffers, states, inputs and outputs by name and by number; what depends on no rank.
struct program_tables {
  graph_view graph;
  plan_view plan;
  const parameter_info* parameters = nullptr;  // behind them the buffers
  flat_parts flat;
  int parameter_total = 0, buffer_total = 0;
  int update_begin = 0;  // the first node of a gradient-keeping program's update; else the end
  dyn_bounds dyn_bound{};
  unsigned dyn_not_empty = 0;

  int table_count() const { return parameter_total + buffer_total; }
  std::string table_name(int at) const {
    const parameter_info& p = parameters[at];
    const std::string path = module_path(graph, p.scope);
    return path.empty() ? p.name : path + "." + p.name;
  }
  std::string parameter_name(int index) const { return table_name(index); }
  std::string buffer_name(int index) const { return table_name(parameter_total + index); }
  int parameter_index(std::string_view name) const { return index_in("parameter", 0, parameter_total, name); }
  int buffer_index(std::string_view name) const { return index_in("buffer", parameter_total, buffer_total, name); }
  int table_node(int at) const {
    return at < parameter_total ? find(op_code::param, at) : find(op_code::module_buffer, at - parameter_total);
  }

  // Of a node, or of a parameter in a flat group: see flat_parts.
  bool is_part(int id) const { return flat.is_part(graph, id); }
  const spec& spec_of(int id) const { return flat.spec_of(graph, id); }
  int node_of(int id) const { return flat.node_of(graph, id); }

  // The node of a state that the optimizer keeps for a parameter.
  int state_node(std::string_view name, moment m) const {
    const int parameter = parameter_index(name);
    if (flat.is_flat(parameter))
      if (const int id = flat.state_id(graph, parameter, static_cast<std::int64_t>(m)); id >= 0) return id;
    bool kept = false;
    for (int i = 0; i < graph.node_count; ++i) {
      if (graph.nodes[i].op != op_code::state) continue;
      const auto of = attributes_of<leaf_attributes>(graph.nodes[i].a);
      if (of.parameter == parameter && of.which == static_cast<std::int64_t>(m)) return i;
      kept = kept || (of.parameter == parameter && of.which != kept_gradient);
    }
    refuse_state(name, m, kept);
  }

  int find(op_code op, int index) const {
    if (op == op_code::param && index >= 0 && index < parameter_total && flat.is_flat(index))
      return flat.parameter_id(graph, index);
    for (int i = 0; i < graph.node_count; ++i)
      if (graph.nodes[i].op == op && attributes_of<leaf_attributes>(graph.nodes[i].a).index == index) return i;
    int count = 0;
    for (int i = 0; i < graph.node_count; ++i) count += graph.nodes[i].op == op ? 1 : 0;
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

  int input_count() const {
    int n = 0;
    for (int i = 0; i < graph.node_count; ++i)
      if (graph.nodes[i].op == op_code::input)
        if (const std::int64_t index = attributes_of<leaf_attributes>(graph.nodes[i].a).index; index >= n)
          n = static_cast<int>(index) + 1;
    return n;
  }

  // Of equal copies of a node's value, whether the rank at this coordinate has the one to write.
  bool writes_first(int id, const int* coordinate) const {
    bool first = true;
    const spec& s = graph.spec_of(node_of(id));
    for (int a = 0; a < s.axes; ++a) first = first && (s.place[a].is_shard() || coordinate[a] == 0);
    return first;
  }

 private:
  int index_in(const char* what, int begin, int count, std::string_view name) const {
    for (int i = 0; i < count; ++i)
      if (table_name(begin + i) == name) return i;
    refuse_name(what, name, count, [&](int i) { return table_name(begin + i); });
  }
};

// A program's. A graph that is made at run time has those of the moment.
template <class Step>
constexpr program_tables make_tables() {
  using source = program_source<Step>;
  program_tables t;
  t.graph = view_of(program_image<Step>::value);
  t.plan = view_of_plan(source::memory::value);
  t.parameters = parameters_of<Step>.item;
  t.flat = flat_parts_of<source>;
  t.parameter_total = source::parameter_total;
  t.buffer_total = source::buffer_total;
  t.update_begin = update_begin(source::program);
  t.dyn_bound = source::dyn_bound;
  t.dyn_not_empty = source::dyn_not_empty;
  return t;
}
template <class Step>
struct tables_of {
  static program_tables get() { return make_tables<Step>(); }
  static graph_view image() { return view_of(program_image<Step>::value); }
  static plan_view plan() { return view_of_plan(program_source<Step>::memory::value); }
};
template <class Step>
  requires requires { typename std::integral_constant<int, program_source<Step>::program.node_count>; }
struct tables_of<Step> {
  static constexpr program_tables value = make_tables<Step>();
  static constexpr const program_tables& get() { return value; }
  static constexpr const graph_view& image() { return value.graph; }
  static constexpr const plan_view& plan() { return value.plan; }
};

}  // namespace shardwise::inline v0_1::runtime

// SPDX-License-Identifier: Apache-2.0
// flat_parts: parameters of flat groups, and their states, by ids of their own behind a program's nodes.
#pragma once

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/program/image.hpp>
#include <shardwise/vocabulary/flat_part.hpp>

namespace shardwise::inline v0_1::runtime {

// A parameter that is a part of a flat one has no node: its id is node_count + parameter, and that of its state number k, a moment,
// node_count + (k + 1) * total + parameter. The other parameters' and states' ids are their nodes. `g` is the program's graph.
struct flat_parts {
  const flat_part* item = nullptr;  // null: the program has no flat group
  int total = 0;                    // parameters
  int moments = 2;  // of a flat parameter: two, or three with the largest second one; its count of steps is one number

  constexpr bool any() const { return item != nullptr; }
  constexpr int slots() const { return any() ? (1 + moments) * total : 0; }
  static constexpr std::int64_t moment_kind(int k) { return k == 2 ? std::int64_t{largest_second_moment} : k; }

  constexpr bool is_flat(int parameter) const { return any() && parameter >= 0 && item[parameter].leaf >= 0; }
  constexpr const flat_part& part(int parameter) const { return any() ? item[parameter] : none; }
  // The number by which the leaf goes that has a parameter.
  constexpr int leaf(int parameter) const { return is_flat(parameter) ? static_cast<int>(item[parameter].leaf) : parameter; }

  template <class Graph>
  constexpr bool is_part(const Graph& g, int id) const {
    return any() && id >= g.node_count;
  }
  template <class Graph>
  constexpr int parameter_of(const Graph& g, int id) const {
    return any() ? (id - g.node_count) % total : -1;
  }
  // The node that has parameter number `parameter`, -1: none.
  template <class Graph>
  constexpr int parameter_node(const Graph& g, int parameter) const {
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == op_code::param && attributes_of<leaf_attributes>(g.nodes[i].a).index == leaf(parameter)) return i;
    return -1;
  }
  template <class Graph>
  constexpr int state_node(const Graph& g, std::int64_t parameter, std::int64_t which) const {
    const std::int64_t owner = parameter < 0 ? parameter : leaf(static_cast<int>(parameter));
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::state) continue;
      const auto of = attributes_of<leaf_attributes>(g.nodes[i].a);
      if (of.parameter == owner && of.which == which) return i;
    }
    return -1;
  }
  // Ids; -1: there is none.
  template <class Graph>
  constexpr int parameter_id(const Graph& g, int parameter) const {
    return is_flat(parameter) ? g.node_count + parameter : parameter_node(g, parameter);
  }
  template <class Graph>
  constexpr int state_id(const Graph& g, std::int64_t parameter, std::int64_t which) const {
    const int node = state_node(g, parameter, which);
    if (node < 0 || !is_flat(static_cast<int>(parameter))) return node;
    for (int k = 0; k < moments; ++k)
      if (which == moment_kind(k)) return g.node_count + (k + 1) * total + static_cast<int>(parameter);
    return node;
  }
  // The node that an id lies in: itself, but of a part.
  template <class Graph>
  constexpr int node_of(const Graph& g, int id) const {
    if (!is_part(g, id)) return id;
    const int slot = (id - g.node_count) / total, p = parameter_of(g, id);
    return slot == 0 ? parameter_node(g, p) : state_node(g, p, moment_kind(slot - 1));
  }
  // The whole tensor's extents and type; of a part the placements of its use.
  template <class Graph>
  constexpr const spec& spec_of(const Graph& g, int id) const {
    return is_part(g, id) ? item[parameter_of(g, id)].used : g.spec_of(id);
  }

  // A part as a rank holds it whose block of the flat parameter has this layout: its elements in a row.
  static constexpr layout layout_of(const flat_part& p, const layout& block) {
    const flat_run run = run_within(p, {block.origin[0], block.ext[0]});
    layout l;
    l.rank = 1;
    l.ext[0] = run.count;
    l.str[0] = 1;
    l.origin[0] = run.first;
    l.global[0] = p.count;
    return l;
  }
  static constexpr std::int64_t place(const flat_part& p, const layout& block) {
    return run_within(p, {block.origin[0], block.ext[0]}).at;
  }
  // The end of the last parameter that lies in leaf number `number`: zeros follow.
  constexpr std::int64_t end_of(int number) const {
    std::int64_t end = 0;
    for (int p = 0; p < total; ++p)
      if (is_flat(p) && leaf(p) == number && item[p].begin + item[p].count > end) end = item[p].begin + item[p].count;
    return end;
  }

 private:
  static constexpr flat_part none{};
};

// Those of a program, or of what stands for it (program_source).
template <class Program>
constexpr flat_parts make_flat_parts() {
  flat_parts parts{nullptr, Program::parameter_total, 2};
  if constexpr (requires { Program::flat.item[0].leaf; }) {
    bool any = false;
    for (int p = 0; p < Program::parameter_total; ++p) any = any || Program::flat.item[p].leaf >= 0;
    if (!any) return parts;
    parts.item = Program::flat.item;
    for (int i = 0; i < Program::program.node_count; ++i)
      if (Program::program.nodes[i].op == op_code::state &&
          attributes_of<leaf_attributes>(Program::program.nodes[i].a).which == largest_second_moment)
        parts.moments = 3;
  }
  return parts;
}
template <class Program>
inline constexpr flat_parts flat_parts_of = make_flat_parts<Program>();

// Whether what two programs have by these ids is the same part of the tensor on every rank.
template <class A, class B, class G, class H>
constexpr bool alike_on_ranks(const G& g, int a, const H& h, int b) {
  constexpr const flat_parts &in_a = flat_parts_of<A>, &in_b = flat_parts_of<B>;
  if (in_a.is_part(g, a) != in_b.is_part(h, b)) return false;
  if (!(g.spec_of(in_a.node_of(g, a)) == h.spec_of(in_b.node_of(h, b)))) return false;
  if (!in_a.is_part(g, a)) return true;
  return in_a.part(in_a.parameter_of(g, a)).begin == in_b.part(in_b.parameter_of(h, b)).begin;
}

}  // namespace shardwise::inline v0_1::runtime

// SPDX-License-Identifier: Apache-2.0
// flat_parts: parameters of flat groups, and their states, by ids of their own behind a program's nodes.
#pragma once

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/program/image.hpp>
#include <shardwise/vocabulary/flat_part.hpp>

namespace shardwise::inline v0_1::runtime {

// A parameter that is a part of a flat one has no node: its id is node_count + parameter, and that of its state number k, a moment,
// node_count + (k + 1) parameter_total + parameter. The other parameters' and states' ids are their nodes. Program: the program
// itself, or what stands for it (program_source).
template <class Program>
struct flat_parts {
  static constexpr bool any = [] {
    if constexpr (requires { Program::flat.item[0].leaf; }) {
      for (int p = 0; p < Program::parameter_total; ++p)
        if (Program::flat.item[p].leaf >= 0) return true;
      return false;
    } else {
      return false;
    }
  }();
  static constexpr int total = Program::parameter_total;
  // Of a flat parameter: two, or three with the largest second one; its count of steps is one number.
  static constexpr int moments = [] {
    if constexpr (any)
      for (int i = 0; i < Program::program.node_count; ++i)
        if (Program::program.nodes[i].op == op_code::state &&
            attributes_of<leaf_attributes>(Program::program.nodes[i].a).which == largest_second_moment)
          return 3;
    return 2;
  }();
  static constexpr std::int64_t moment_kind(int k) { return k == 2 ? std::int64_t{largest_second_moment} : k; }
  static constexpr int slots = any ? (1 + moments) * total : 0;

  static constexpr bool is_flat([[maybe_unused]] int parameter) {
    if constexpr (any) return parameter >= 0 && Program::flat.item[parameter].leaf >= 0;
    else return false;
  }
  static constexpr const flat_part& part([[maybe_unused]] int parameter) {
    if constexpr (any) return Program::flat.item[parameter];
    else return none;
  }
  // The number by which the leaf goes that has a parameter.
  static constexpr int leaf(int parameter) {
    return is_flat(parameter) ? static_cast<int>(part(parameter).leaf) : parameter;
  }

  template <class Graph>
  static constexpr bool is_part(const Graph& g, int id) {
    return any && id >= g.node_count;
  }
  template <class Graph>
  static constexpr int parameter_of([[maybe_unused]] const Graph& g, [[maybe_unused]] int id) {
    if constexpr (any) return (id - g.node_count) % total;
    else return -1;
  }
  // The node that has parameter number `parameter`, -1: none.
  template <class Graph>
  static constexpr int parameter_node(const Graph& g, int parameter) {
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == op_code::param && attributes_of<leaf_attributes>(g.nodes[i].a).index == leaf(parameter)) return i;
    return -1;
  }
  template <class Graph>
  static constexpr int state_node(const Graph& g, std::int64_t parameter, std::int64_t which) {
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
  static constexpr int parameter_id(const Graph& g, int parameter) {
    return is_flat(parameter) ? g.node_count + parameter : parameter_node(g, parameter);
  }
  template <class Graph>
  static constexpr int state_id(const Graph& g, std::int64_t parameter, std::int64_t which) {
    const int node = state_node(g, parameter, which);
    if (node < 0 || !is_flat(static_cast<int>(parameter))) return node;
    for (int k = 0; k < moments; ++k)
      if (which == moment_kind(k)) return g.node_count + (k + 1) * total + static_cast<int>(parameter);
    return node;
  }
  // The node that an id lies in: itself, but of a part.
  template <class Graph>
  static constexpr int node_of(const Graph& g, int id) {
    if constexpr (any)
      if (is_part(g, id)) {
        const int slot = (id - g.node_count) / total, p = parameter_of(g, id);
        return slot == 0 ? parameter_node(g, p) : state_node(g, p, moment_kind(slot - 1));
      }
    return id;
  }
  // The whole tensor's extents and type; of a part the placements of its use.
  template <class Graph>
  static constexpr const spec& spec_of(const Graph& g, int id) {
    if (is_part(g, id)) return part(parameter_of(g, id)).used;
    return g.spec_of(id);
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
  static constexpr std::int64_t end_of(int number) {
    std::int64_t end = 0;
    for (int p = 0; p < total; ++p)
      if (is_flat(p) && leaf(p) == number && part(p).begin + part(p).count > end) end = part(p).begin + part(p).count;
    return end;
  }

 private:
  static constexpr flat_part none{};
};

// Whether what two programs have by these ids is the same part of the tensor on every rank.
template <class A, class B, class G, class H>
constexpr bool alike_on_ranks(const G& g, int a, const H& h, int b) {
  using in_a = flat_parts<A>;
  using in_b = flat_parts<B>;
  if (in_a::is_part(g, a) != in_b::is_part(h, b)) return false;
  if (!(g.spec_of(in_a::node_of(g, a)) == h.spec_of(in_b::node_of(h, b)))) return false;
  if (!in_a::is_part(g, a)) return true;
  return in_a::part(in_a::parameter_of(g, a)).begin == in_b::part(in_b::parameter_of(h, b)).begin;
}

}  // namespace shardwise::inline v0_1::runtime

// SPDX-License-Identifier: Apache-2.0
// kernel_scratch: the most scratch that any kernel of a program is given, as the records say.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1::passes {

enum class kernel_place : std::uint8_t { host, device };

template <kernel_place Place>
constexpr const scratch_rule& scratch_rule_of(const operation& o) {
  if constexpr (Place == kernel_place::host) return o.host_scratch.value;
  else return o.device_scratch.value;
}

// What the kernel of node `id` is given.
template <kernel_place Place, class Graph>
constexpr std::int64_t kernel_scratch_of(const Graph& g, int id) {
  const node& n = g.nodes[id];
  const scratch_rule& bytes = scratch_rule_of<Place>(record_of(g, n));
  const bool widened = Place == kernel_place::host && widens(n.op) && is_low_precision(kernel_type(g, n));
  if (!bytes && !widened) return 0;
  const spec* in[max_inputs]{};
  for (int k = 0; k < n.inputs; ++k) in[k] = &g.specs[g.nodes[n.in[k]].spec];
  std::int64_t all = bytes(n.a, in, n.inputs, g.specs[n.spec]);
  if (!widened) return all;
  if (result_count(g, n) == 1) return all + widened_block::bytes(in, n.inputs, g.specs[n.spec]);
  for (int k = 0; k < n.inputs; ++k) all += widened_block::bytes(*in[k]);
  for (int j = id + 1; j < g.node_count; ++j)
    if (g.nodes[j].op == op_code::getitem && g.nodes[j].in[0] == id) all += widened_block::bytes(g.specs[g.nodes[j].spec]);
  return all;
}

namespace detail {

// By operation of the library, so that a node without scratch costs one look.
struct scratch_table {
  bool any[static_cast<int>(op_code::count)]{};
};
template <kernel_place Place>
inline constexpr scratch_table wants_scratch = [] {
  scratch_table t;
  for (int op = 0; op < static_cast<int>(op_code::count); ++op)
    t.any[op] = op == static_cast<int>(op_code::custom) ||
                static_cast<bool>(scratch_rule_of<Place>(operation_of(static_cast<op_code>(op))));
  return t;
}();

// Whether two nodes are given equal scratch because they are applications of one operation to equal specs.
template <class Graph>
constexpr bool applies_alike(const Graph& g, const node& n, const node& m) {
  if (n.op != m.op || n.spec != m.spec || n.inputs != m.inputs) return false;
  for (int k = 0; k < n.inputs; ++k)
    if (g.nodes[n.in[k]].spec != g.nodes[m.in[k]].spec) return false;
  return n.a == m.a;
}

}  // namespace detail

// Layers repeat: the node counted last for each hash stands for those that apply alike. Nodes are kept by number, since clang
// makes expressions of every element of an array that a constant copies.
template <kernel_place Place, class Graph>
constexpr std::int64_t kernel_scratch(const Graph& g) {
  std::int32_t known[64];
  for (std::int32_t& k : known) k = -1;
  std::int64_t most = 0;
  const int count = g.node_count;
  const bool low = Place == kernel_place::host && has_low_precision(g);
  for (int i = 0; i < count; ++i) {
    const node& n = g.nodes[i];
    if (!detail::wants_scratch<Place>.any[static_cast<int>(n.op)] && !low) continue;
    const int first = n.inputs > 0 ? g.nodes[n.in[0]].spec : 0, last = n.inputs > 0 ? g.nodes[n.in[n.inputs - 1]].spec : 0;
    const unsigned hash = static_cast<unsigned>(first * 31 + last * 7 + n.spec + static_cast<int>(n.a.v[0]));
    std::int32_t& before = known[hash & 63U];
    if (before >= 0 && detail::applies_alike(g, n, g.nodes[before]) && !(low && result_count(g, n) > 1)) continue;
    before = i;
    const std::int64_t bytes = kernel_scratch_of<Place>(g, i);
    if (bytes > most) most = bytes;
  }
  return most;
}

}  // namespace shardwise::inline v0_1::passes

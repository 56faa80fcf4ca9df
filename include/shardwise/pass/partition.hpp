// SPDX-License-Identifier: Apache-2.0
// supported_subgraphs: which nodes of a step can be lowered together as one unit.
#pragma once

#include <shardwise/graph/text.hpp>
#include <shardwise/pass/rewrite.hpp>

namespace shardwise {

// Subgraph of each node, in the order of what they depend on; -1: left alone.
template <int Nodes>
struct partition {
  int of[Nodes > 0 ? Nodes : 1]{};
  int operations[Nodes > 0 ? Nodes : 1]{};  // kernels of each subgraph
  int count = 0;
};

namespace passes {
// Collectives, updates, lists and functions of the user stay outside.
template <class Graph>
constexpr bool is_supported(const Graph& g, int i) {
  const op_code op = g.nodes[i].op;
  return !is_leaf(op) && !is_update(op) && op != op_code::opaque && op != op_code::pack && op != op_code::adam_term &&
         !communicates(shardwise::detail::transition_at(g, i));
}
}  // namespace passes

// Two supported nodes are in one subgraph if as many unsupported nodes stand before each: on the longest way from the
// leaves, by operands and by what updates write. So no way leads out of a subgraph and back into it, and each can run as
// one unit, in order of number. Subgraphs with fewer than `least` kernels are not worth it.
template <class Graph>
constexpr partition<Graph::node_capacity> supported_subgraphs(const Graph& g, int least = 10) {
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  partition<Graph::node_capacity> r;
  storage_map<Graph::node_capacity> storage;
  find_storage(g, storage);
  int depth[capacity]{}, written[capacity]{}, kernels[capacity + 1]{}, number[capacity + 1]{};
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    int d = 0;
    for (int k = 0; k < n.inputs; ++k) {
      const int x = n.in[k], owner = storage.owner[x];
      const int before = depth[x] + (passes::is_supported(g, x) || is_leaf(g.nodes[x].op) ? 0 : 1);
      d = before > d ? before : d;
      d = written[owner] > d ? written[owner] : d;
    }
    depth[i] = d;
    for (int k = 0; k < n.inputs; ++k)
      if (writes_operand(n, k) && written[storage.owner[n.in[k]]] < d + 1) written[storage.owner[n.in[k]]] = d + 1;
    if (passes::is_supported(g, i) && runs_kernel(n.op)) ++kernels[d];
  }
  for (int d = 0; d <= g.node_count; ++d) {
    number[d] = kernels[d] >= least ? r.count++ : -1;
    if (number[d] >= 0) r.operations[number[d]] = kernels[d];
  }
  for (int i = 0; i < g.node_count; ++i) r.of[i] = passes::is_supported(g, i) ? number[depth[i]] : -1;
  return r;
}

}  // namespace shardwise

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

template <int Nodes>
struct subgraph_search {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;

  partition<Nodes> found;
  int depth[capacity]{}, written[capacity]{}, kernels[capacity + 1]{}, number[capacity + 1]{};
  bool supported[capacity]{};
  int cursor = 0;

  // Whether work is left.
  template <class Graph>
  constexpr bool advance(const Graph& g, const storage_map<Nodes>& storage, int least, stage_work work) {
    const int count = g.node_count;
    for (; cursor < count && work.take(60); ++cursor) dive(g, storage, cursor);
    if (cursor < count || work.defer(12 * count)) return true;
    for (int d = 0; d <= count; ++d) {
      number[d] = kernels[d] >= least ? found.count++ : -1;
      if (number[d] >= 0) found.operations[number[d]] = kernels[d];
    }
    for (int i = 0; i < count; ++i) found.of[i] = supported[i] ? number[depth[i]] : -1;
    return false;
  }

 private:
  template <class Graph>
  constexpr void dive(const Graph& g, const storage_map<Nodes>& storage, int i) {
    const node& n = g.nodes[i];
    supported[i] = is_supported(g, i);
    int d = 0;
    for (int k = 0; k < n.inputs; ++k) {
      const int x = n.in[k], owner = storage.owner[x];
      const int before = depth[x] + (supported[x] || is_leaf(g.nodes[x].op) ? 0 : 1);
      d = before > d ? before : d;
      d = written[owner] > d ? written[owner] : d;
    }
    depth[i] = d;
    for (int k = 0; k < n.inputs; ++k)
      if (writes_operand(n, k) && written[storage.owner[n.in[k]]] < d + 1) written[storage.owner[n.in[k]]] = d + 1;
    if (supported[i] && runs_kernel(n.op)) ++kernels[d];
  }
};

template <int Least>
struct find_subgraphs {
  template <class Source>
  using state = subgraph_search<graph_type_of<Source>::node_capacity>;
  template <class Source, class State>
  static constexpr void start(State&) {}
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return st.advance(Source::value, found_storage<Source>, Least, stage_work(nodes));
  }
};
}  // namespace passes

// Two supported nodes are in one subgraph if as many unsupported nodes stand before each: on the longest way from the
// leaves, by operands and by what updates write. So no way leads out of a subgraph and back into it, and each can run as
// one unit, in order of number. Subgraphs with fewer than `least` kernels are not worth it.
template <class Graph>
constexpr partition<Graph::node_capacity> supported_subgraphs(const Graph& g, int least = 10) {
  storage_map<Graph::node_capacity> storage;
  find_storage(g, storage);
  passes::subgraph_search<Graph::node_capacity> s;
  s.advance(g, storage, least, stage_work::all());
  return s.found;
}

// The same of a constant graph.
template <class Source, int Least = 10, int Nodes = stage_nodes>
struct supported_subgraphs_of {
  static constexpr const auto& value = staged<passes::find_subgraphs<Least>, Source, Nodes>::value.found;
};

}  // namespace shardwise

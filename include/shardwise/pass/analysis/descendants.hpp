// SPDX-License-Identifier: Apache-2.0
// find_all_descendants: everything that depends on given nodes; and whether nothing outside a set depends on it.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/support/diagnose.hpp>

namespace shardwise::inline v0_1 {

// Node ids in program order.
template <int Nodes>
struct node_list {
  int id[Nodes > 0 ? Nodes : 1]{};
  int count = 0;
  finding error{};

  constexpr const int* begin() const { return id; }
  constexpr const int* end() const { return id + count; }
  constexpr bool contains(int node) const {
    for (int k = 0; k < count; ++k)
      if (id[k] == node) return true;
    return false;
  }
};

// Marks the parents and all that depends on them; `in` holds false.
template <class Graph>
constexpr finding mark_descendants(const Graph& g, const int* parents, int count, bool* in) {
  finding error;
  if (count < 1) error = {problem::descendants_of_nothing, -1, -1, -1, count, 1};
  for (int k = 0; k < count; ++k) {
    if (parents[k] < 0 || parents[k] >= g.node_count)
      error = {problem::descendants_of_nothing, -1, -1, -1, parents[k], g.node_count};
    else in[parents[k]] = true;
  }
  if (error) return error;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) in[i] = in[i] || in[n.in[k]];
  }
  return {};
}

// The parents, their users, the users of those, and so on. That a node is an
// output of the graph is no use of it.
template <class Graph>
constexpr node_list<Graph::node_capacity> find_all_descendants(const Graph& g, const int* parents, int count) {
  node_list<Graph::node_capacity> r;
  bool in[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
  r.error = mark_descendants(g, parents, count, in);
  if (r.error) return r;
  for (int i = 0; i < g.node_count; ++i)
    if (in[i]) r.id[r.count++] = i;
  return r;
}

// Whether each user of each node of the set is in the set; the graph's outputs may be.
template <class Graph, class Set>
constexpr bool is_leaf_subgraph(const Graph& g, const Set& set) {
  bool in[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
  for (const int i : set) in[i] = true;
  for (int i = 0; i < g.node_count; ++i)
    for (int k = 0; k < g.nodes[i].inputs; ++k)
      if (in[g.nodes[i].in[k]] && !in[i]) return false;
  return true;
}

// The same of a constant graph: all_descendants<Source, 3, 7>::value.
template <class Source, int... Parents>
struct all_descendants {
 private:
  static constexpr int parents[] = {Parents..., -1};
  static constexpr int count = static_cast<int>(sizeof...(Parents));
  static constexpr auto found() {
    const auto g = Source::value;
    return find_all_descendants(g, parents, count);
  }

 public:
  static constexpr auto value = found();
  static_assert(raise<value.error.what, Source>::ok);
};

}  // namespace shardwise::inline v0_1

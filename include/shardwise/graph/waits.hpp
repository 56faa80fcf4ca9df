// SPDX-License-Identifier: Apache-2.0
// Waits in a graph: which collectives run beside other operations, and until when.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// A `wait` has its operand's value and storage. A collective that a wait reads is started where it stands, and done
// where its first wait stands, or where something else reads it first; one that no wait reads is done where it stands.
// A wait for an input is done when what the caller has set there has arrived. So waits change when something happens
// and nothing else: any pass may move them, merge them, or drop them.
inline constexpr int max_wait_distance = 5;  // nodes from a collective to its wait, itself included

// Whether node i sends to other ranks.
template <class Graph>
constexpr bool is_collective(const Graph& g, int i) {
  return communicates(detail::transition_at(g, i));
}

// Whether node i's value lies in an operand's storage that `changes` marks: what no kernel computes is there already.
template <class Graph>
constexpr bool shares_marked(const Graph& g, int i, const unsigned char* changes) {
  const node& x = g.nodes[i];
  bool any = false;
  for (int k = 0; k < x.inputs; ++k) any = any || changes[x.in[k]] != 0;
  return any && (is_update(x.op) || !runs_kernel(x.op) || is_view(x, g.specs[g.nodes[x.in[0]].spec], g.specs[x.spec]));
}

// What node i's value is or is a view of: a collective or an input; -1: neither is near.
template <class Graph>
constexpr int arrival_at(const Graph& g, int i) {
  for (int level = 0; level < max_wait_distance; ++level) {
    const node& n = g.nodes[i];
    if (n.op == op_code::input || is_collective(g, i)) return i;
    if (n.inputs == 0 || !may_view(n.op)) return -1;
    i = n.in[0];
  }
  return -1;
}

// What wait `w` is for, and the collective among them; -1 for none.
template <class Graph>
constexpr int awaited_by(const Graph& g, int w) {
  return arrival_at(g, g.nodes[w].in[0]);
}
template <class Graph>
constexpr int collective_of(const Graph& g, int w) {
  const int i = awaited_by(g, w);
  return i >= 0 && g.nodes[i].op == op_code::redistribute ? i : -1;
}

// Whether some collective is waited for.
template <class Graph>
constexpr bool has_waits(const Graph& g) {
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::wait && collective_of(g, i) >= 0) return true;
  return false;
}

}  // namespace shardwise::inline v0_1

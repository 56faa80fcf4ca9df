// SPDX-License-Identifier: Apache-2.0
// verify: the invariants of a graph: operands come first, and every node has the extents and placements its rule gives.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/verify_fused.hpp>
#include <shardwise/propagation/infer.hpp>

namespace shardwise {

// Checks nodes [begin, end); the finding's operand is the node's id. Usable in constants and at run time; forward and
// backward nodes alike, so that differentiation answers to the same rules as the user.
template <class Graph>
constexpr finding verify(const Graph& g, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k)
      if (n.in[k] < 0 || n.in[k] >= i) return {problem::graph_cycle, i};
    if (n.inputs == 0) continue;  // leaves and fills are placed by their makers
    if (n.op == op_code::expand) continue;  // an adjoint whose placement the primal chooses; see its proof
    if (is_fused(n)) {
      if (!fused_fits(g, n)) return {problem::graph_unplaced, i};
      continue;
    }
    if (n.op == op_code::relabel || n.op == op_code::opaque) {  // claims of the user, about blocks of given extents
      if (!same_blocks(g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec])) return {problem::graph_unplaced, i};
      continue;
    }
    if (is_update(n.op)) {
      for (int a = 0; a < g.specs[n.spec].axes; ++a)
        if (g.specs[g.nodes[n.in[1]].spec].place[a].is_partial()) return {problem::graph_unplaced, i, -1, a};
      continue;
    }
    spec in[max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) in[k] = g.specs[g.nodes[n.in[k]].spec];
    const outcome o = infer(n.op, n.a, in, n.inputs);
    const spec& out = g.specs[n.spec];
    bool same = !o.error && o.out.rank == out.rank && o.out.type == out.type;
    for (int d = 0; same && d < out.rank; ++d) same = o.out.extent[d] == out.extent[d];
    for (int a = 0; same && a < out.axes; ++a)
      if (!(o.out.place[a] == out.place[a])) return {problem::graph_unplaced, i, -1, a};
    if (!same) return {problem::graph_unplaced, i};
  }
  return {};
}

template <class Graph>
constexpr finding verify(const Graph& g) {
  return verify(g, 0, g.node_count);
}

}  // namespace shardwise

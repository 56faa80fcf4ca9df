// SPDX-License-Identifier: Apache-2.0
// Units: nodes that are lowered together. A unit is a mark in the module tree, so that it lasts through later passes.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// A scope with a name and an index is unit `index`; what it stands under is the module that its nodes belong to.
inline constexpr const char* unit_name = "submod";

constexpr bool is_unit(const scope& s) { return s.name != nullptr && s.index >= 0; }

// The unit of node i, -1: none.
template <class Graph>
constexpr int unit_of(const Graph& g, int i) {
  const int at = g.nodes[i].scope;
  return at >= 0 && is_unit(g.scopes[at]) ? g.scopes[at].index : -1;
}

// One more than the highest unit.
template <class Graph>
constexpr int unit_count(const Graph& g) {
  int count = 0;
  for (int s = 0; s < g.scope_count; ++s)
    if (is_unit(g.scopes[s]) && g.scopes[s].index >= count) count = g.scopes[s].index + 1;
  return count;
}

}  // namespace shardwise::inline v0_1

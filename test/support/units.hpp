// SPDX-License-Identifier: Apache-2.0
// What tests ask of subgraphs that are lowered to units.
#pragma once

#include <shardwise/pass/fuse/partial_lower.hpp>

#include <algorithm>
#include <vector>

namespace test {

namespace sw = shardwise;

// Runs of calls of each unit: one, if it is lowered to a unit indeed. What runs no kernel is no call.
template <class Graph>
std::vector<int> runs_of_calls(const Graph& g) {
  std::vector<int> runs(static_cast<std::size_t>(sw::unit_count(g)));
  int before = -1;
  for (int i = 0; i < g.node_count; ++i) {
    if (!sw::passes::is_kernel(g, i) && !sw::is_update(g.nodes[i].op) && !sw::communicates(sw::detail::transition_at(g, i)))
      continue;
    const int unit = sw::unit_of(g, i);
    if (unit >= 0 && unit != before) ++runs[static_cast<std::size_t>(unit)];
    before = unit;
  }
  return runs;
}

// No way leads out of a subgraph and back into it; large enough; what must stay outside is outside.
template <class Graph>
bool is_partition(const Graph& g, int least) {
  const auto p = sw::supported_subgraphs(g, least);
  std::vector<int> kernels(static_cast<std::size_t>(p.count));
  for (int i = 0; i < g.node_count; ++i) {
    if (p.of[i] < 0) continue;
    if (!sw::core_operations::holds(g, i)) return false;
    kernels[static_cast<std::size_t>(p.of[i])] += sw::passes::is_kernel(g, i) ? 1 : 0;
  }
  for (int s = 0; s < p.count; ++s) {
    if (kernels[static_cast<std::size_t>(s)] < least || kernels[static_cast<std::size_t>(s)] != p.operations[s])
      return false;
    // 1: in it or after it by nodes of it; 2: after it by a node outside
    std::vector<int> after(static_cast<std::size_t>(g.node_count));
    for (int i = 0; i < g.node_count; ++i) {
      int& mine = after[static_cast<std::size_t>(i)];
      for (int k = 0; k < g.nodes[i].inputs; ++k)
        if (after[static_cast<std::size_t>(g.nodes[i].in[k])] != 0)
          mine = std::max(mine, p.of[i] == s ? after[static_cast<std::size_t>(g.nodes[i].in[k])] : 2);
      if (p.of[i] == s && mine == 2) return false;
      if (p.of[i] == s) mine = 1;
    }
  }
  return true;
}

}  // namespace test

// SPDX-License-Identifier: Apache-2.0
// comm_fusion_buckets: which gradients are summed together, when small reductions are joined into large ones.
#pragma once

#include <shardwise/graph/text/text.hpp>

namespace shardwise::inline v0_1 {

// Reductions item[first] to item[first + count - 1], in program order.
struct fusion_bucket {
  int first = 0, count = 0;
  std::int64_t bytes = 0;
};

template <int Nodes>
struct fusion_plan {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  int item[capacity]{};  // node ids of the reductions
  int items = 0;
  fusion_bucket bucket[capacity]{};
  int count = 0;
};

inline constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

// The all-reduces on one axis that updates of parameters depend on, in program order. A bucket is closed as soon as it
// holds `first` bytes, all but the first one as soon as they hold `cap`: so the first reduction starts early and the
// others are large. What is left at the end is a bucket too. Bytes are those of the ranks at coordinate 0.
template <class Graph>
constexpr fusion_plan<Graph::node_capacity> comm_fusion_buckets(const Graph& g, int axis, std::int64_t cap = 100 * mebibyte,
                                                                std::int64_t first = mebibyte) {
  fusion_plan<Graph::node_capacity> r;
  bool wanted[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
  for (int i = g.node_count - 1; i >= 0; --i) {
    const node& n = g.nodes[i];
    wanted[i] = wanted[i] || is_update(n.op);
    for (int k = 0; wanted[i] && k < n.inputs; ++k) wanted[n.in[k]] = true;
  }
  constexpr int origin[max_axes]{};
  fusion_bucket open;
  std::int64_t threshold = first;
  for (int i = 0; i < g.node_count; ++i) {
    if (!wanted[i] || detail::transition_at(g, i) != transition::all_reduce) continue;
    if (attributes_of<redistribute_attributes>(g.nodes[i].a).axis != axis) continue;
    const spec& s = g.spec_of(i);
    r.item[r.items++] = i;
    ++open.count;
    open.bytes += local_numel(s, origin) * static_cast<std::int64_t>(size_of(s.type));
    if (open.bytes < threshold) continue;
    r.bucket[r.count++] = open;
    open = {r.items, 0, 0};
    threshold = cap;
  }
  if (open.count > 0) r.bucket[r.count++] = open;
  return r;
}

}  // namespace shardwise::inline v0_1

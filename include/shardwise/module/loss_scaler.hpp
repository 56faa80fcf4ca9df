// SPDX-License-Identifier: Apache-2.0
// What a dynamic loss scale adds to a step (module/precision.hpp): its states, and the one node that adjusts them.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1::detail {

// The scale's node of a graph in the making, -1: it has none.
constexpr int scale_of(const builder& b) {
  for (int i = 0; i < b.node_count; ++i)
    if (b.nodes[i].op == op_code::state && attributes_of<leaf_attributes>(b.nodes[i].a).which == scale_state) return i;
  return -1;
}

// Out of the sum of all gradients' squares, whole on all ranks: the node whose result is the updates' factor.
template <class Scaler, bool Clips>
constexpr int emit_adjustment(builder& b, int total) {
  const int scale = scale_of(b);
  spec s = b.specs[b.nodes[total].spec];
  s.type = b.specs[b.nodes[scale].spec].type;
  if (s.type != b.specs[b.nodes[total].spec].type)
    total = b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(s.type)), 0, b.intern(s), -1, total);
  s.rank = 1;
  s.extent[0] = 2;
  const int two = b.intern(contiguous(s));
  const auto leaf = [&](std::int64_t index, state_kind which) {
    return b.emit(op_code::state, pack_attributes(leaf_attributes{.index = index, .parameter = -1, .which = which}), 0, two,
                  -1);
  };
  const int counts = leaf(1, scale_counts), factor = leaf(2, step_factor);
  const auto of = adjust_scale_attributes{
      .clips = Clips, .growth = Scaler::growth, .backoff = Scaler::backoff, .interval = Scaler::interval};
  return b.emit(op_code::adjust_scale, pack_attributes(of), 0, two, -1, factor, scale, counts, total);
}

}  // namespace shardwise::inline v0_1::detail

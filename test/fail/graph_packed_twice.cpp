// SPDX-License-Identifier: Apache-2.0
// A pass copies a pack, so that two say where the same tensors lie.
// expect: graph: a tensor is placed twice
// expect(g++): <copies<true> ?>
// expect(clang): copies<true>

#include "fail_step.hpp"

template <bool Twice>
struct copies {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0, before = -1; i < g.node_count; ++i) {
      if (!sw::places_leaves(g.nodes[i])) continue;
      if (Twice && before >= 0 && g.nodes[before].spec == g.nodes[i].spec) g.nodes[i] = g.nodes[before];
      before = i;
    }
    return {};
  }
};
#ifdef SHARDWISE_FAIL
using copied = copies<true>;
#else
using copied = copies<false>;
#endif
constexpr int nodes = step<sw::fused_optimizer, copied>::program.node_count;

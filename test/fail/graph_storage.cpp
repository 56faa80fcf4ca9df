// SPDX-License-Identifier: Apache-2.0
// A pass writes a pack whose slots do not begin where its operands do.
// expect: graph: a pack or unpack does not fit its operands
// expect(g++): <shifts<8> ?>
// expect(clang): shifts<8>

#include "fail_step.hpp"

template <int Elements>
struct shifts {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::pack) g.nodes[i].a.v[0] += Elements;
    return {};
  }
};
#ifdef SHARDWISE_FAIL
using shifted = shifts<8>;
#else
using shifted = shifts<0>;
#endif
constexpr int nodes = step<sw::fused_optimizer, shifted>::program.node_count;

// SPDX-License-Identifier: Apache-2.0
// where_possible: which fusions a pass makes of those that it may make: all of them. where_faster (pass/tune/) asks a device's table.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1::passes {

// Products that become one: of one value by several weights; of one value by several others, as the gradients of such weights are; and
// products that are added up.
enum class merged_kind : unsigned char { forward, weights, added };

struct where_possible {
  // `count` products that are alike, the first of which is node `leader`; they share operand `shared`, unless they are added up.
  template <class Graph>
  static constexpr bool merges(const Graph&, int /*leader*/, int /*count*/, merged_kind, int /*shared*/) {
    return true;
  }
  // The adjoints of a norm over the last dim of x.
  template <class Graph>
  static constexpr bool joins(const Graph&, const spec& /*x*/) {
    return true;
  }
  // The loss of rows of logits and its adjoint.
  template <class Graph>
  static constexpr bool joins_loss(const Graph&, const spec& /*logits*/) {
    return true;
  }
};

}  // namespace shardwise::inline v0_1::passes

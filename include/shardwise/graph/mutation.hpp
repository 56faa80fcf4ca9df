// SPDX-License-Identifier: Apache-2.0
// What tracing and functionalise must know of writes in place: which nodes are one tensor to the program, and which lie in
// one place.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// Whether a node's value lies in its first operand's storage when the program runs.
constexpr bool lies_in_operand(const node& n, const spec* specs, const node* nodes) {
  if (n.inputs == 0) return false;
  return is_update(n.op) || (may_view(n.op) && is_view(n, specs[nodes[n.in[0]].spec], specs[n.spec]));
}

// Whether a node is its first operand, seen differently or written: what is written to one is seen in the other. A
// redistribution is a value of its own whether or not it moves anything, so that the size of a mesh axis tells nothing.
constexpr bool is_seen(const node& n, const spec* specs, const node* nodes) {
  return n.op != op_code::redistribute && lies_in_operand(n, specs, nodes);
}

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// What tracing must know of writes in place: whose storage a node's value lies in, and which nodes stand for two tensors.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise {

// Whether a node is its first operand, seen differently or written.
constexpr bool is_seen(const node& n, const spec* specs, const node* nodes) {
  if (n.inputs == 0) return false;
  return is_update(n.op) || (may_view(n.op) && is_view(n, specs[nodes[n.in[0]].spec], specs[n.spec]));
}

namespace detail {

// One tensor redistributed twice in the same way is one node: the second tensor is then the first one's storage too,
// which nothing but a write would tell.
constexpr void share(builder& b, int id) {
  constexpr int room = static_cast<int>(sizeof(b.shared) / sizeof(b.shared[0]));
  for (int k = 0; k < b.shared_count && k < room; ++k)
    if (b.shared[k] == id) return;
  if (b.shared_count < room) b.shared[b.shared_count] = id;
  ++b.shared_count;
}

// Whether what `id` lies in is such a node; where they are too many to be listed, any redistribution.
constexpr bool is_shared(const builder& b, int id) {
  constexpr int room = static_cast<int>(sizeof(b.shared) / sizeof(b.shared[0]));
  if (b.shared_count == 0) return false;
  while (id < b.node_capacity && is_seen(b.nodes[id], b.specs, b.nodes)) id = b.nodes[id].in[0];
  if (id >= b.node_capacity || b.nodes[id].op != op_code::redistribute) return false;
  if (b.shared_count > room) return true;
  for (int k = 0; k < b.shared_count; ++k)
    if (b.shared[k] == id) return true;
  return false;
}

}  // namespace detail

}  // namespace shardwise

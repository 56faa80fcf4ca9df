// SPDX-License-Identifier: Apache-2.0
// Halos: what windows read beyond a rank's own part of a dim, brought before they are applied; not called by users.
#pragma once

#include <shardwise/graph/functions/views.hpp>
#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::detail {

// The axis that alone cuts `dim` of x, in equal shards, or -1.
constexpr int halo_axis(const spec& x, int dim) {
  int found = -1;
  for (int a = 0; a < x.axes; ++a) {
    if (!x.place[a].is_shard(dim)) continue;
    if (found >= 0 || x.place[a] != shard_value(dim)) return -1;
    found = a;
  }
  return found;
}

// x with the halos that `To` asks for (windows or readers) along the axis that cuts To.dim.
template <placement To, class X>
constexpr auto with_halo(const X& x) {
  constexpr int axis = halo_axis(X::sp, To.dim);
  if constexpr (!is_contiguous(X::sp)) return with_halo<To>(contiguous(x));
  else return apply<op_code::redistribute, attributes<redistribute_attributes>(axis, pack(To))>(0, x);
}

// Nodes that halo_node appends at most: a copy, and an exchange for each of two dims.
inline constexpr int halo_nodes = 3;

// The same of a node while adjoints are written.
constexpr int halo_node(autodiff::pullback& p, int id, int axis, const placement& to) {
  autodiff::tape& t = p.t;
  if (t.lacks(id)) return id;
  const int source = autodiff::contiguous_node(t, id, p.n.scope);
  const op_attr a = attributes<redistribute_attributes>(axis, pack(to));
  return t.b.emit(op_code::redistribute, a, 0, t.intern(rules::redistribute_spec(a, t.spec_at(source))), p.n.scope, source);
}
// What stands before the exchanges that gave a node its halos.
constexpr int without_halo(const autodiff::pullback& p, int id) {
  const auto has_halo = [&](const spec& s) {
    bool any = false;
    for (int a = 0; a < s.axes; ++a) any = any || s.place[a].overlaps();
    return any;
  };
  while (id >= 0 && has_halo(p.t.spec_at(id))) id = p.t.b.nodes[id].in[0];
  return id;
}

}  // namespace shardwise::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0
// Gradients of two bytes that updates and norms read as they are, without a copy in float (mixed).
#pragma once

#include <shardwise/graph/builder.hpp>

namespace shardwise::inline v0_1::detail {

// Whether a node only casts elements of two bytes to float, which loses nothing.
template <class Graph>
constexpr bool widens_to_float(const Graph& g, const node& n) {
  return n.op == op_code::cast && g.specs[n.spec].type == dtype::f32 &&
         is_low_precision(g.specs[g.nodes[n.in[0]].spec].type);
}
// Whether node i, a gradient, is such a cast behind nothing but changes of placement along axes of one rank: then what is cast is the
// gradient, too. Not where ranks are still to sum it, since sums are in the type that the plan says.
template <class Graph>
constexpr bool has_low_form(const Graph& g, int i) {
  const spec& s = g.specs[g.nodes[i].spec];
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial() && s.axis_size[a] > 1) return false;
  while (g.nodes[i].op == op_code::redistribute &&
         is_view(g.nodes[i], g.specs[g.nodes[g.nodes[i].in[0]].spec], g.specs[g.nodes[i].spec]))
    i = g.nodes[i].in[0];
  return widens_to_float(g, g.nodes[i]) && is_contiguous(g.specs[g.nodes[g.nodes[i].in[0]].spec]);
}

// Nodes that stand between it and the cast.
template <class Graph>
constexpr int steps_to_low_form(const Graph& g, int i) {
  int steps = 0;
  for (; g.nodes[i].op == op_code::redistribute; i = g.nodes[i].in[0]) ++steps;
  return steps;
}
// What gradient `id` is made of by its cast, placed as it is.
constexpr int low_form(builder& b, int id) {
  if (b.nodes[id].op == op_code::cast) return b.nodes[id].in[0];
  node n = b.nodes[id];
  n.in[0] = low_form(b, n.in[0]);
  spec s = b.specs[n.spec];
  s.type = b.specs[b.nodes[n.in[0]].spec].type;
  n.spec = b.intern(s);
  return b.append(n);
}

}  // namespace shardwise::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0
// Gradients that a program keeps from run to run (module/keep_gradients.hpp): the leaves that hold their sums, and what every run
// computes.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// The two parts of a program that keeps gradients, which run apart.
enum class program_part : std::uint8_t { accumulate, update };

// Whether a node is a state that holds the sum of a parameter's gradients.
constexpr bool keeps_gradient(const node& n) {
  return n.op == op_code::state && attributes_of<leaf_attributes>(n.a).which == kept_gradient;
}
template <class Graph>
constexpr bool keeps_gradients(const Graph& g) {
  const int count = g.node_count;
  for (int i = 0; i < count; ++i)
    if (keeps_gradient(g.nodes[i])) return true;
  return false;
}

// Whether node i leaves behind what every run does: a sum of gradients, a buffer, an input. Other updates are the optimizer's.
template <class Graph>
constexpr bool writes_every_run(const Graph& g, int i) {
  if (!is_update(g.nodes[i].op)) return false;
  int o = g.nodes[i].in[0];
  while (g.nodes[o].inputs > 0 &&
         (is_update(g.nodes[o].op) || is_view(g.nodes[o], g.spec_of(g.nodes[o].in[0]), g.spec_of(o))))
    o = g.nodes[o].in[0];
  const node& leaf = g.nodes[o];
  return keeps_gradient(leaf) || leaf.op == op_code::module_buffer || leaf.op == op_code::input;
}

// A program that keeps gradients has two parts: what every run computes, its outputs and what it leaves behind; and what an update
// computes beside it, out of the sums. `every[i]` says of which part node i is; leaves are of the first. Returns one past the last
// node of the first part that is no leaf.
template <class Graph>
constexpr int mark_every_run(const Graph& g, unsigned char* every) {
  int end = 0;
  for (int k = 0; k < g.output_count; ++k) every[g.outputs[k]] = 1;
  for (int i = g.node_count - 1; i >= 0; --i) {
    const node& n = g.nodes[i];
    if (!every[i]) every[i] = is_leaf(n.op) || writes_every_run(g, i) ? 1 : 0;
    if (!every[i]) continue;
    if (end == 0 && !is_leaf(n.op)) end = i + 1;
    for (int k = 0; k < n.inputs; ++k) every[n.in[k]] = 1;
  }
  return end;
}
// Where the second part begins in a graph whose first part stands before it (passes::updates_last); of a program that keeps no
// gradients, its end.
template <class Graph>
constexpr int update_begin(const Graph& g) {
  if (!keeps_gradients(g)) return g.node_count;
  unsigned char every[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
  return mark_every_run(g, every);
}

}  // namespace shardwise::inline v0_1

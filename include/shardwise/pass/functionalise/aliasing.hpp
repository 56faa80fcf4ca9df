// SPDX-License-Identifier: Apache-2.0
// Which tensors are one to a program that writes in place, and the versions of them that functionalise keeps.
#pragma once

#include <shardwise/graph/mutation.hpp>

namespace shardwise::inline v0_1::passes {

// What functionalise finds before it begins: for every node the one that it is or is a view of, whether that is ever
// written, and through how many views the node sees it.
template <int Nodes>
struct aliasing {
  static constexpr int size = Nodes > 0 ? Nodes : 1;
  int root[size];
  int depth[size];
  unsigned char written[size];  // of a root

  template <class Graph>
  constexpr finding find(const Graph& g) {
    const int count = g.node_count;
    for (int i = count; i < size; ++i) root[i] = depth[i] = written[i] = 0;
    for (int i = 0; i < count; ++i) {
      const node& n = g.nodes[i];
      root[i] = i;
      depth[i] = 0;
      written[i] = 0;
      if (!is_seen(n, g.specs, g.nodes)) continue;
      const int from = root[n.in[0]];
      // an input on its way is where it will be; what else is waited for nobody has seen before
      if (n.op == op_code::wait && !is_leaf(g.nodes[from].op)) continue;
      root[i] = from;
      depth[i] = depth[n.in[0]] + (n.op == op_code::copy_ ? 0 : 1);
      if (n.op == op_code::copy_) written[from] = 1;
    }
    for (int i = 0; i < count; ++i) {
      const node& n = g.nodes[i];
      if (is_update(n.op) && n.op != op_code::copy_ && written[root[i]]) return {problem::mutation_updates, i};
    }
    return {};
  }

  // What is wrong with the tensors that get other storage (set_): not an input of the program; data that the program does not
  // compute, or that another input got; the tensor or its data written afterwards; a view of the tensor, of what it was, read
  // afterwards.
  template <class Graph>
  constexpr finding set_problem(const Graph& g) const {
    for (int s = 0; s < g.node_count; ++s) {
      if (!sets_storage(g.nodes[s])) continue;
      const int x = root[s], data = root[g.nodes[s].in[1]];
      int set = g.nodes[s].in[0];
      while (g.nodes[set].op == op_code::copy_) set = g.nodes[set].in[0];
      if (set != x || g.nodes[x].op != op_code::input) return {problem::set_input_only, s};
      if (is_leaf(g.nodes[data].op)) return {problem::set_data, s};
      for (int j = 0; j < g.node_count; ++j) {
        const node& n = g.nodes[j];
        if (j != s && sets_storage(n) && root[n.in[1]] == data) return {problem::set_data, j};
        if (j <= s) continue;
        if (n.op == op_code::copy_ && (root[j] == x || root[j] == data)) return {problem::set_written, j};
        for (int k = 0; k < n.inputs; ++k) {
          const bool view = root[n.in[k]] == x && depth[n.in[k]] > 0;
          if (view && n.in[k] < s) return {problem::set_view, j};
        }
      }
      for (int k = 0; k < g.output_count; ++k)
        if (root[g.outputs[k]] == x && depth[g.outputs[k]] > 0 && g.outputs[k] < s) return {problem::set_view, g.outputs[k]};
    }
    return {};
  }

  // Bounds of what the pass appends: a read makes its views anew, a write goes back through them.
  struct sizes {
    int nodes, specs;
  };
  template <class Graph>
  constexpr sizes sizes_after(const Graph& g) const {
    int nodes = 0, aliases = 0;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const bool writes = n.op == op_code::copy_, view = root[i] != i && written[root[i]];
      for (int k = writes ? 1 : 0; k < n.inputs && (writes || !view); ++k)
        if (written[root[n.in[k]]]) nodes += 2 * depth[n.in[k]];
      // a value, a way back of at most three nodes a view, and what slices are written into
      if (writes) nodes += depth[i] == 0 ? 1 : 5 * depth[i] - 1;
      if (sets_storage(n)) nodes += 3 + g.output_count;  // a copy, the leaf and what says that the value is there
      if (view && !writes) ++aliases;
      // what is stored as its operand is may have to be made dense
      if (!view) nodes += (written[i] ? 3 : 1) + (lies_in_operand(n, g.specs, g.nodes) ? 1 : 0);
    }
    for (int k = 0; k < g.output_count; ++k)
      nodes += 4 * depth[g.outputs[k]] + (is_channels_last(g.spec_of(root[g.outputs[k]])) ? 3 : 2);
    return {nodes, 2 * g.spec_count + 4 * aliases + 16};
  }
};

// Versions: a node's value is right as of the number of writes that its storage had seen when it was made. A write to a
// view is known there alone (`ahead`) until something else reads that storage; then it goes back view by view, as far as both are views
// of one tensor.
template <class New, int Old>
struct functional_state {
  static constexpr int capacity = New::node_capacity, size = aliasing<Old>::size;

  New g;
  aliasing<Old> seen;
  int now[size];     // the new node with the value, -1: none yet
  int stamp[size];   // its version, -1: none
  int home[size];    // of a root: the node itself
  int writes[size];  // of a root
  int ahead[size];   // of a root: the nearest tensor that knows of all writes, if it is not the root itself; -1: none
  int path[size];
  int cursor = 0;
  int result = -1;  // the value that is differentiated
};

}  // namespace shardwise::inline v0_1::passes

// SPDX-License-Identifier: Apache-2.0
// Which values of checkpointed calls the backward pass needs once more, and which of them it finds where they are.
#pragma once

#include <shardwise/graph/checkpoint.hpp>
#include <shardwise/graph/stage.hpp>

namespace shardwise::inline v0_1::passes {

inline constexpr int max_checkpoint_depth = 31;  // of regions that lie in each other

// Regions of a graph and how they lie in each other.
template <int Scopes>
struct region_tree {
  static constexpr int capacity = Scopes > 0 ? Scopes : 1;
  std::int32_t region[capacity]{};  // of each scope, -1: none
  std::int32_t depth[capacity]{};   // of a region, from 1; 0: the scope is none

  template <class Graph>
  constexpr bool build(const Graph& g) {  // false: too deep
    for (int s = 0; s < g.scope_count; ++s) region[s] = shardwise::detail::region_of(g.scopes, s);
    for (int s = 0; s < g.scope_count; ++s)
      if (region[s] == s)
        for (int r = s; r >= 0; r = shardwise::detail::around(g.scopes, r))
          if (++depth[s] > max_checkpoint_depth) return false;
    return true;
  }
  template <class Graph>
  constexpr int region_at(const Graph& g, int i) const {
    const int s = g.nodes[i].scope;
    return s < 0 ? -1 : region[s];
  }
  constexpr int depth_of(int r) const { return r < 0 ? 0 : depth[r]; }
  // The region around r that lies at depth `d`, 0 < d <= depth_of(r).
  template <class Graph>
  constexpr int ancestor(const Graph& g, int r, int d) const {
    while (depth[r] > d) r = shardwise::detail::around(g.scopes, r);
    return r;
  }
  // The depth of the innermost region that both lie in.
  template <class Graph>
  constexpr int common(const Graph& g, int a, int b) const {
    while (a != b) {
      if (depth_of(a) >= depth_of(b)) a = shardwise::detail::around(g.scopes, a);
      else b = shardwise::detail::around(g.scopes, b);
    }
    return depth_of(a);
  }
};

// A value in regions r1, r2, ..., rd, each in the one before, has instances 0 to d: 0 is what the forward pass computed, k what the
// replay of rk computes. Who reads it reads the instance of the innermost region that both lie in: a backward node of the module
// itself the last one, a node outside of all of them the first one, and an operation of the replay of rk never one behind k. An
// instance that a policy keeps is the one before it. An instance that something reads from a region further in, or from outside,
// lasts until then; later ones are that instance, and nothing is computed for them.
template <int Nodes, int Scopes>
struct checkpoint_demand {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;

  region_tree<Scopes> tree{};
  std::uint32_t
      need[capacity]{};  // instances that are read, bit by bit; behind the sweep, those from 1 on that are computed
  std::uint32_t held[capacity]{};  // those that are read from further in, or last anyway
  std::int32_t begin[capacity]{};  // of a node's instances among all of them
  std::int32_t first[Scopes > 0 ? Scopes : 1]{}, last[Scopes > 0 ? Scopes : 1]{};  // of a region's nodes
  unsigned char forward[capacity]{};  // what the program's results that are no gradients depend on
  unsigned char wanted[capacity]{};   // what gradients depend on
  std::int32_t computed = 0;          // instances from 1 on
  std::int32_t scopes = 0;            // a bound on those that they take
  std::int32_t first_update = capacity;
  std::int32_t cursor = 0, part = 0;
  finding wrong{};

  // Whether instances of a node are computed again: leaves, writes and functions that nothing is known of are where they are, and
  // a gathered parameter is one, which its group keeps or gathers again (reshard_parameters).
  template <class Graph>
  constexpr bool is_member(const Graph& g, int i) const {
    const node& n = g.nodes[i];
    return forward[i] != 0 && tree.region_at(g, i) >= 0 && !is_leaf(n.op) && !is_update(n.op) && n.op != op_code::opaque &&
           !gathers_parameter(n) && n.op != op_code::pack && n.op != op_code::room && n.expression < 0;
  }
  // Once parameters are being written, what is computed from them is no longer what it was.
  constexpr bool is_backward(int i) const { return wanted[i] != 0 && forward[i] == 0 && i < first_update; }

  // The instance of v that one reads who lies in region `from`, itself at level `level`, policies considered.
  template <class Graph>
  constexpr int wants(const Graph& g, int v, int from, int level) const {
    if (!is_member(g, v)) return 0;
    const int own = tree.region_at(g, v);
    int k = tree.common(g, from, own);
    if (k > level) k = level;
    for (; k > 0 && keeps_value(*g.scopes[tree.ancestor(g, own, k)].checkpoint, g, v); --k) {
    }
    return k;
  }
  // The same behind the sweep: an instance that is computed, or 0.
  template <class Graph>
  constexpr int reads(const Graph& g, int v, int from, int level) const {
    const int k = wants(g, v, from, level);
    return k == 0 || (need[v] >> k & 1U) != 0 ? k : std::countr_zero(held[v]);
  }
  constexpr int place_of(int v, int instance) const {
    return begin[v] + std::popcount(need[v] & ((std::uint32_t{1} << instance) - 1));
  }

  // A program's results, and one node of the sweep that marks what they depend on. GradientOutput(k): whether output k is a gradient.
  template <class Graph, class GradientOutput>
  constexpr void mark_outputs(const Graph& g, GradientOutput is_gradient) {
    for (int k = 0; k < g.output_count; ++k) {
      (is_gradient(k) ? wanted : forward)[g.outputs[k]] = 1;
      held[g.outputs[k]] = 1;
    }
  }
  template <class Graph>
  constexpr void mark(const Graph& g, int i) {
    const node& n = g.nodes[i];
    if (is_update(n.op)) first_update = i;
    if (is_optimizer(n.op)) wanted[n.in[1]] = 1;
    if ((forward[i] | wanted[i]) == 0) return;
    if (forward[i] != 0 &&
        has_results(g, i))  // all of its results are the forward pass's, those that the backward pass alone reads too
      for (int j = i + 1; j < g.node_count; ++j)
        if (g.nodes[j].op == op_code::getitem && g.nodes[j].in[0] == i) forward[j] = 1;
    for (int k = 0; k < n.inputs; ++k) {
      forward[n.in[k]] |= forward[i];
      wanted[n.in[k]] |= wanted[i];
    }
  }

  // One node of the sweep backwards: all that read it have been seen.
  template <class Graph>
  constexpr void visit(const Graph& g, int i, stage_work& work) {
    need[i] &= ~std::uint32_t{1};
    if (is_backward(i)) return read_all(g, i, max_checkpoint_depth + 1, work);
    if (need[i] == 0) return;
    const int own = tree.region_at(g, i);
    for (int k = tree.depth[own]; k > 0; --k) {
      const std::uint32_t bit = std::uint32_t{1} << k;
      if ((need[i] & bit) == 0) continue;
      if ((held[i] & (bit - 1)) != 0) {
        need[i] = (need[i] & ~bit) | (std::uint32_t{1} << std::countr_zero(held[i]));
        continue;
      }
      const int r = tree.ancestor(g, own, k);
      if (last[r] == 0) last[r] = i + 1;
      first[r] = i;
      read_all(g, i, k, work);
    }
    need[i] &= ~std::uint32_t{1};
    computed += std::popcount(need[i]);
  }
  template <class Graph>
  constexpr void read_all(const Graph& g, int i, int level, stage_work& work) {
    const node& n = g.nodes[i];
    const int from = tree.region_at(g, i);
    for (int j = 0; j < n.inputs; ++j) {
      const int v = n.in[j], k = wants(g, v, from, level);
      need[v] |= std::uint32_t{1} << k;
      if (k < level && k < tree.depth_of(tree.region_at(g, v))) held[v] |= std::uint32_t{1} << k;
    }
    work.take(70 * n.inputs);
  }

  // Whether work is left.
  template <class Graph, class GradientOutput>
  constexpr bool some(const Graph& g, GradientOutput is_gradient, stage_work work) {
    while (work.left > 0) {
      if (part == 0) {
        if (!tree.build(g)) wrong = {problem::checkpoint_depth};
        mark_outputs(g, is_gradient);
        for (int s = 0; s < g.scope_count; ++s) scopes += tree.depth_of(tree.region[s]);
        work.take(40 * g.scope_count);
        cursor = wrong ? 0 : g.node_count;
        part = 1;
      } else if (part == 1) {
        while (cursor > 0 && work.take(40)) mark(g, --cursor);
        if (cursor > 0) return true;
        cursor = wrong ? 0 : g.node_count;
        part = 2;
      } else if (part == 2) {
        while (cursor > 0 && work.take(30)) visit(g, --cursor, work);
        if (cursor > 0) return true;
        part = 3;
      } else {
        for (; cursor < g.node_count && work.take(10); ++cursor)
          begin[cursor] = cursor == 0 ? 0 : begin[cursor - 1] + std::popcount(need[cursor - 1]);
        return cursor < g.node_count;
      }
    }
    return true;
  }
};

}  // namespace shardwise::inline v0_1::passes

// SPDX-License-Identifier: Apache-2.0
// rematerialise: values of the forward pass that are cheap to compute again are, just before the backward pass needs them.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/pass/rematerialise/min_cut.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

// The cut of a graph under a budget. Percent of the bytes that the cheapest cut keeps: 100 computes nothing costly
// again, 0 keeps nothing that parameters and inputs do not give.
template <int Percent>
struct solve_cut {
  template <int Nodes>
  struct progress {
    minimum_cut<Nodes> p;
    int part = 0;    // of the building
    int solved = 0;  // cuts so far
  };
  template <class Source>
  using state = progress<graph_type_of<Source>::node_capacity>;

  template <class Source, class State>
  static constexpr void start(State&) {}
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return solve(st, Source::value, stage_work(nodes));
  }

  // Whether work is left.
  template <class State, class Graph>
  static constexpr bool solve(State& st, const Graph& g, stage_work work) {
    while (work.left > 0) {
      if (st.p.build(g, st.part)) {
        ++st.part;
        work.take(25 * g.node_count);
        continue;
      }
      if (!st.p.saturate(g, work) || !st.p.cut(g, work)) continue;
      if (Percent == 100 || st.solved == 1) return false;
      if (work.defer(60 * g.node_count)) continue;
      work.take(60 * g.node_count);
      ++st.solved;
      st.p.spend(g, Percent);
    }
    return true;
  }

  template <class Source, int Nodes = stage_nodes>
  struct of {
    static constexpr const auto& value = staged<solve_cut, Source, Nodes>::value.p;
  };
};

// Values that the backward pass reads and that are not kept, and what they are computed from: what is copied.
template <int Nodes, class Graph>
constexpr int copied_nodes(const minimum_cut<Nodes>& p, const Graph& g) {
  unsigned char copied[Nodes]{};
  int count = 0;
  for (int i = g.node_count - 1; i >= 0; --i) {
    const bool forward = p.marks.of(i) == program_phase::forward;
    if (forward && !copied[i]) continue;
    const node& x = g.nodes[i];
    for (int k = 0; k < x.inputs; ++k) {
      const int u = x.in[k];
      if (!p.member[u] || p.kept[u] || copied[u]) continue;
      copied[u] = 1;
      ++count;
    }
  }
  return count;
}

struct recompute_values {
  template <int Nodes, class Graph>
  struct progress {
    Graph g{typename Graph::unfilled{}};
    std::int32_t to[Nodes];    // the node in the new graph
    std::int32_t copy[Nodes];  // its copy there, -1: none yet
    std::int32_t cursor;
  };

  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g) {
    begin_anew(st.g, g);
    for (auto& i : st.to) i = -1;
    for (auto& i : st.copy) i = -1;
    st.cursor = 0;
  }

  // Whether work is left.
  template <class State, class Partition, class Graph>
  static constexpr bool some(State& st, const Partition& p, const Graph& g, stage_work work) {
    for (; st.cursor < g.node_count && work.take(40); ++st.cursor) {
      const int i = st.cursor;
      node x = g.nodes[i];
      const bool forward = p.marks.of(i) == program_phase::forward;
      for (int k = 0; k < x.inputs; ++k)
        x.in[k] = forward || available(p, x.in[k]) ? st.to[x.in[k]] : again(st, p, g, x.in[k], work);
      st.to[i] = append(st.g, x);
    }
    if (st.cursor < g.node_count) return true;
    copy_outputs(st.g, g, st.to);
    number_batches(st.g);  // what is computed again may stand between members
    return false;
  }

 private:
  template <class Partition>
  static constexpr bool available(const Partition& p, int i) {
    return !p.member[i] || p.kept[i];
  }
  template <class Graph>
  static constexpr int append(Graph& g, const node& x) {
    g.nodes[g.node_count] = x;
    return g.node_count++;
  }
  // The copy of node i, operands first. Depth is the longest chain of values that are not kept.
  template <class State, class Partition, class Graph>
  static constexpr int again(State& st, const Partition& p, const Graph& g, int i, stage_work& work) {
    int waiting[Graph::node_capacity > 0 ? Graph::node_capacity : 1];
    int top = 0;
    waiting[top++] = i;
    while (top > 0) {
      work.take(50);
      const int v = waiting[top - 1];
      node x = g.nodes[v];
      int missing = st.copy[v] >= 0 ? -2 : -1;
      for (int k = 0; k < x.inputs && missing == -1; ++k)
        if (!available(p, x.in[k]) && st.copy[x.in[k]] < 0) missing = x.in[k];
      if (missing >= 0) {
        waiting[top++] = missing;
        continue;
      }
      --top;
      if (missing == -2) continue;
      for (int k = 0; k < x.inputs; ++k) x.in[k] = available(p, x.in[k]) ? st.to[x.in[k]] : st.copy[x.in[k]];
      st.copy[v] = append(st.g, x);
    }
    return st.copy[i];
  }
};

// Partition: a type with the partition of Source's graph.
template <class Partition>
struct recompute_staged {
  template <class Source>
  static constexpr int capacity = Source::value.node_count + copied_nodes(Partition::value, Source::value);
  template <class Source>
  using state =
      recompute_values::progress<graph_type_of<Source>::node_capacity,
                                 resized<graph_type_of<Source>, capacity<Source>, graph_type_of<Source>::spec_capacity>>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    recompute_values::begin(st, Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return recompute_values::some(st, Partition::value, Source::value, stage_work(nodes));
  }
};

}  // namespace passes

// Keeps of the forward pass what the backward pass cannot do without, by a minimum cut over the bytes kept, and computes
// the rest again: the same operations on the same values, hence the same bits. Percent is the memory budget of
// activations: 100 (the cut itself: no product, no collective, no sum is done twice) down to 0 (parameters and inputs
// alone are kept; the whole forward pass is done twice, so the peak is not the least). Between, values are let go in order of what computing them again
// costs for their bytes. What the policy of a checkpoint keeps stays under any budget; of what a checkpoint keeps besides, the cut
// chooses. What packs place and what a fused kernel stores besides its result stays as well: before fuse_kernels a budget reaches
// further than behind it. As PyTorch's partitioner with its memory budget; of its heuristics only those that concern memory are here.
template <int Percent = 100>
struct rematerialise {
  using shardwise_pass = void;
  using computes_again = void;
  using apply_after = passes_list<merge_common, cancel_redistributions>;  // which would undo it
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
  static_assert(raise<((Percent < 0 || Percent > 100) ? problem::memory_budget : problem::none), rematerialise>::ok);

  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
    using chosen = typename passes::solve_cut<Percent>::template of<Source, Nodes>;
    struct rewritten {
      static constexpr const auto& value = staged<passes::recompute_staged<chosen>, Source, Nodes>::value.g;
    };
    static constexpr const auto& value = passes::eliminate_dead<rewritten>::value;
  };
  template <class Source>
  struct run : in_stages<Source> {};

  // On a graph value, which needs room for the copies: without it nothing is computed again.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    typename passes::solve_cut<Percent>::template progress<Graph::node_capacity> st;
    passes::solve_cut<Percent>::solve(st, g, stage_work::all());
    if (g.node_count + passes::copied_nodes(st.p, g) > Graph::node_capacity) return {};
    passes::recompute_values::progress<Graph::node_capacity, Graph> w;
    passes::recompute_values::begin(w, g);
    passes::recompute_values::some(w, st.p, g, stage_work::all());
    g = w.g;
    passes::remove_dead(g);
    return {};
  }
};

}  // namespace shardwise::inline v0_1

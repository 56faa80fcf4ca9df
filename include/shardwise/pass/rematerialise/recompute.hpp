// SPDX-License-Identifier: Apache-2.0
// recompute: what checkpoints of a plan leave out of memory is computed again, call by call, just before the backward pass reads it.
#pragma once

#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/rematerialise/checkpoint_demand.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

// Whether output k of a source is a gradient: of a train step none is, its gradients go to updates.
template <class Source>
constexpr bool is_gradient_output(int k) {
  if constexpr (requires { Source::is_gradient(0); }) return Source::is_gradient(k);
  else return false;
}

struct find_demand {
  template <class Source>
  using state = checkpoint_demand<graph_type_of<Source>::node_capacity, graph_type_of<Source>::scope_capacity>;

  template <class Source, class State>
  static constexpr void start(State&) {}
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return st.some(Source::value, is_gradient_output<Source>, stage_work(nodes));
  }
};

// The new graph: as it was, and before the first backward node that reads an instance of a region, the replay of that region: its
// operations in the order of the forward pass, so that what stands side by side there (a batch of collectives) does so here.
template <class In, class Out, int Computed>
struct replay_state {
  static constexpr int capacity = In::node_capacity > 0 ? In::node_capacity : 1;
  static constexpr int scope_capacity = In::scope_capacity > 0 ? In::scope_capacity : 1;

  Out g;
  std::int32_t to[capacity];
  std::int32_t copy[Computed > 0 ? Computed : 1];  // the instances from 1 on, each node's together
  std::int32_t scope_of[scope_capacity];           // of this scope in the replay that scope_in names
  std::int32_t scope_in[scope_capacity];
  std::int32_t next[scope_capacity];               // of a region: the node with which its replay goes on
  std::int32_t waiting[max_checkpoint_depth + 1];  // regions to be replayed, the first last
  std::int32_t waits;
  std::int32_t cursor;

  constexpr void begin(const In& from) {
    begin_anew(g, from);
    for (auto& i : to) i = -1;
    for (auto& i : copy) i = -1;
    for (auto& s : scope_of) s = -1;
    for (auto& s : scope_in) s = -1;
    for (auto& i : next) i = 0;
    for (auto& r : waiting) r = -1;
    waits = cursor = 0;
  }

  // Whether work is left.
  template <class Demand>
  constexpr bool some(const In& from, const Demand& d, stage_work work) {
    while (cursor < from.node_count && work.take(30)) {
      if (waits > 0) replay(from, d, work);
      else write(from, d, work);
    }
    if (cursor < from.node_count) return true;
    copy_outputs(g, from, to);
    return false;
  }

 private:
  constexpr int append(const node& n) {
    g.nodes[g.node_count] = n;
    return g.node_count++;
  }

  template <class Demand>
  constexpr void write(const In& from, const Demand& d, stage_work& work) {
    const node& x = from.nodes[cursor];
    node n = x;
    if (!d.is_backward(cursor)) {
      for (int k = 0; k < x.inputs; ++k) n.in[k] = to[x.in[k]];
    } else {
      const int own = d.tree.region_at(from, cursor);
      work.take(70 * x.inputs);
      for (int k = 0; k < x.inputs; ++k) {
        const int v = x.in[k], instance = d.reads(from, v, own, max_checkpoint_depth + 1);
        if (instance == 0) {
          n.in[k] = to[v];
          continue;
        }
        n.in[k] = copy[d.place_of(v, instance)];
        if (n.in[k] < 0) return ask_for(from, d, d.tree.ancestor(from, d.tree.region_at(from, v), instance));
      }
    }
    to[cursor++] = append(n);
  }

  // Region r is replayed next, and before it those around it, as far as the forward pass has been written: all of it, unless its
  // nodes stand among the backward ones.
  template <class Demand>
  constexpr void ask_for(const In& from, const Demand& d, int r) {
    for (; r >= 0; r = shardwise::detail::around(from.scopes, r)) {
      waiting[waits++] = r;
      if (next[r] < d.first[r]) next[r] = d.first[r];
    }
  }

  template <class Demand>
  constexpr void replay(const In& from, const Demand& d, stage_work& work) {
    const int r = waiting[waits - 1], level = d.tree.depth[r];
    if (next[r] >= d.last[r] || next[r] >= cursor) {
      --waits;
      return;
    }
    const int i = next[r]++;
    const int own = d.tree.region_at(from, i);
    if ((d.need[i] >> level & 1U) == 0 || d.tree.ancestor(from, own, level) != r) return;
    const node& x = from.nodes[i];
    node n = x;
    work.take(50 + 70 * x.inputs);
    for (int k = 0; k < x.inputs; ++k) {
      const int v = x.in[k], instance = d.reads(from, v, own, level);
      n.in[k] = instance == 0 ? to[v] : copy[d.place_of(v, instance)];
    }
    n.scope = scope_in_replay(from, x.scope, r);
    copy[d.place_of(i, level)] = append(n);
  }

  constexpr int scope_in_replay(const In& from, int s, int r) {
    if (scope_in[s] != r) {
      const scope& own = from.scopes[s];
      scope_in[s] = r;
      scope_of[s] = g.scope_count;
      g.scopes[g.scope_count++] = {own.name, own.index, own.parent, -1, r, nullptr};
    }
    return scope_of[s];
  }
};

// Demand: a type with what Source's graph demands.
template <class Demand>
struct replay_staged {
  template <class Source>
  using out = resized<graph_type_of<Source>, Source::value.node_count + Demand::value.computed,
                      graph_type_of<Source>::spec_capacity, Source::value.scope_count + Demand::value.scopes>;
  template <class Source>
  using state = replay_state<graph_type_of<Source>, out<Source>, Demand::value.computed>;

  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
    if (Demand::value.wrong) st.g.error = Demand::value.wrong;
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return st.some(Source::value, Demand::value, stage_work(nodes));
  }
};

}  // namespace passes

// What checkpoints of a plan mean (module/checkpoint.hpp): programs of a plan that has some run it before the passes of their pipeline.
// The same operations on the same values, hence the same bits; nodes of a replay have scopes that say so, so that merge_common and
// merge_products leave them apart from what they repeat. A graph without checkpoints is itself.
struct recompute {
  using shardwise_pass = void;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;

  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
    struct demand {
      static constexpr const auto& value = staged<passes::find_demand, Source, Nodes>::value;
    };
    static constexpr const auto& value = staged<passes::replay_staged<demand>, Source, Nodes>::value.g;
  };
  template <class Source, bool Any = has_checkpoints(Source::value)>
  struct run {
    static constexpr const auto& value = Source::value;
    static constexpr bool unchanged = true;
  };
  template <class Source>
  struct run<Source, true> : in_stages<Source> {};

  // On a graph value, which needs room for what is computed again.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    if (!has_checkpoints(g)) return {};
    passes::checkpoint_demand<Graph::node_capacity, Graph::scope_capacity> d;
    d.some(g, [](int) { return false; }, stage_work::all());
    if (d.wrong) return d.wrong;
    if (g.node_count + d.computed > Graph::node_capacity)
      return {problem::graph_full, -1, -1, -1, g.node_count + d.computed, Graph::node_capacity};
    if (g.scope_count + d.scopes > Graph::scope_capacity)
      return {problem::graph_full, -1, -1, -1, g.scope_count + d.scopes, Graph::scope_capacity};
    passes::replay_state<Graph, Graph, Graph::node_capacity> w;
    w.begin(g);
    w.some(g, d, stage_work::all());
    g = w.g;
    return {};
  }
};

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// supported_subgraphs: which nodes of a step can be lowered together as one unit, and the order in which each stands alone.
#pragma once

#include <shardwise/graph/stage.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1 {

// Subgraph of each node, in the order of what they depend on; -1: left alone.
template <int Nodes>
struct partition {
  int of[Nodes > 0 ? Nodes : 1]{};
  int operations[Nodes > 0 ? Nodes : 1]{};  // kernels of each subgraph
  int count = 0;
};

namespace passes {

// What nothing can make part of a subgraph: leaves, collectives and their waits, updates.
template <class Graph>
constexpr bool stays_outside(const Graph& g, int i) {
  const op_code op = g.nodes[i].op;
  return is_leaf(op) || is_update(op) || op == op_code::wait || communicates(shardwise::detail::transition_at(g, i));
}

}  // namespace passes

// Operations of tensors whose kernels the library knows; lists, the steps of updates over them and functions of the user
// are not.
struct core_operations {
  template <class Graph>
  static constexpr bool holds(const Graph& g, int i) {
    const op_code op = g.nodes[i].op;
    return op != op_code::opaque && op != op_code::pack && !is_optimizer_term(op) && !passes::stays_outside(g, i);
  }
};

namespace passes {

// Two supported nodes are in one subgraph if as many changes between supported and unsupported nodes stand before each, on
// the longest way from the leaves, by operands and by what updates write. So no way leads out of a subgraph and back into
// it, and there cannot be fewer of them: some way goes through all. What does no work (views, rooms) or reads nothing
// (fills) changes nothing, and goes with its first reader. Those of fewer than `least` kernels are no subgraphs.
//
// Order: every subgraph is one run of nodes, where its last one stood; what reads it comes after it, and all else stays
// where it was. Linear in the graph, in pieces of any size.
template <int Nodes, int Scopes>
struct unit_order {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;

  storage_map<Nodes> storage;
  // Changes before a node, from 1: even where a subgraph is, odd elsewhere, never less than an operand's.
  int key[capacity];
  int low[capacity];   // the lowest that a reader's is
  int time[capacity];  // what a node comes after: the number of the last node that it waits for, or its own
  int head[capacity + 2], next[capacity];               // nodes of each key, in program order
  int first[capacity], last[capacity], link[capacity];  // nodes of each time, by key, then in program order
  int kernels[capacity + 1], number[capacity + 1];      // by half of an even key: its kernels, its subgraph
  int written[capacity], read[capacity];  // what outlives the step: highest key of its writers and readers, then last time
  int seen[Scopes + 1];                   // the subgraph that met the module last
  int of[capacity], order[capacity];
  int least, count, last_key, placed, marks;
  int phase, cursor, at, latest;
  bool again;
  finding error;

  template <class Graph>
  constexpr void begin(const Graph& g, int least_kernels) {
    find_storage(g, storage);
    for (int i = 0; i < capacity; ++i) {
      time[i] = order[i] = 0;
      key[i] = 1;
      low[i] = capacity + 2;
      next[i] = first[i] = last[i] = link[i] = of[i] = -1;
      written[i] = read[i] = 0;
      kernels[i] = 0;
      head[i] = number[i] = -1;
    }
    kernels[capacity] = 0;
    head[capacity] = head[capacity + 1] = number[capacity] = -1;
    for (int& s : seen) s = -1;
    for (int k = 0; k < g.output_count; ++k) low[g.outputs[k]] = 0;
    least = least_kernels;
    count = last_key = placed = marks = phase = cursor = latest = 0;
    at = -1;
    again = false;
    error = {};
  }

  // Until the work is done, or about `budget` steps of evaluation; whether any is left.
  template <class Predicate, class Graph>
  constexpr bool advance(const Graph& g, std::int64_t budget) {
    while (budget > 0 && phase < 5) budget -= step<Predicate>(g);
    return phase < 5;
  }
  static constexpr std::int64_t cost(int nodes) { return 720 * (static_cast<std::int64_t>(nodes) + 2); }

 private:
  template <class Predicate, class Graph>
  constexpr int step(const Graph& g) {
    const int n = g.node_count;
    switch (phase) {
      case 0:
        if (cursor < n) return place<Predicate>(g, cursor++), 250;
        break;
      case 1:
        if (cursor < n) return settle<Predicate>(g, n - 1 - cursor++), 80;
        break;
      case 2:
        if (cursor <= n) return count_kernels(cursor++), 20;
        break;
      case 3:
        if (cursor <= last_key) return at < 0 ? next_key() : wait(g), 150;
        break;
      default:
        if (cursor < n) return emit(g), 30;
    }
    ++phase;
    cursor = 0;
    at = -1;
    if (phase == 3)
      for (int i = 0; i < n; ++i) written[i] = read[i] = 0;
    return 5 * n + 1 < 250 ? 5 * n + 1 : 250;
  }

  // Reads and writes of what outlives the step: f(owner of the storage, whether it is written).
  template <class Graph, class F>
  constexpr void each_access(const Graph& g, int i, F&& f) const {
    const node& n = g.nodes[i];
    const bool update = is_update(n.op);
    if (n.inputs > 0 && !update && (!runs_kernel(n.op) || is_view(n, g.spec_of(n.in[0]), g.spec_of(i)))) return;
    for (int k = 0; k < n.inputs; ++k) {
      const int o = storage.owner[n.in[k]];
      if (outlives(g, o)) f(o, writes_operand(n, k) || g.nodes[n.in[k]].op == op_code::room);
    }
    if (const int o = storage.owner[i]; o != i && !update && outlives(g, o)) f(o, true);
  }
  template <class Graph>
  static constexpr bool outlives(const Graph& g, int owner) {
    return is_variable_leaf(g.nodes[owner].op) || places_leaves(g.nodes[owner]);
  }
  template <class Graph>
  static constexpr bool is_fixed(const Graph& g, int i) {
    return is_leaf(g.nodes[i].op) || places_leaves(g.nodes[i]);
  }

  // The least of `known` at what node i's accesses must come after.
  template <class Graph>
  constexpr int after_accesses(const Graph& g, int i, int least_value) const {
    int r = least_value;
    each_access(g, i, [&](int o, bool writes) {
      r = written[o] > r ? written[o] : r;
      if (writes && read[o] > r) r = read[o];
    });
    return r;
  }
  template <class Graph>
  constexpr void note_accesses(const Graph& g, int i, int value) {
    each_access(g, i, [&](int o, bool writes) {
      int& known = writes ? written[o] : read[o];
      known = value > known ? value : known;
    });
  }

  template <class Predicate, class Graph>
  constexpr void place(const Graph& g, int i) {
    if (is_fixed(g, i)) return;
    const bool supported = Predicate::holds(g, i);
    if (supported && stays_outside(g, i) && !error) error = {problem::lowering_admits, i};
    int k = 1;
    for (int j = 0; j < g.nodes[i].inputs; ++j) k = key[g.nodes[i].in[j]] > k ? key[g.nodes[i].in[j]] : k;
    k = after_accesses(g, i, k);
    if ((k % 2 == 0) != supported && !(supported && goes_along(g, i))) ++k;
    key[i] = k;
    note_accesses(g, i, k);
  }

  template <class Graph>
  static constexpr bool goes_along(const Graph& g, int i) {
    return !is_kernel(g, i) || g.nodes[i].inputs == 0;
  }

  // Backwards, so that all readers are settled.
  template <class Predicate, class Graph>
  constexpr void settle(const Graph& g, int i) {
    if (is_fixed(g, i)) return;
    if (low[i] > key[i] && low[i] <= capacity + 1 && goes_along(g, i) && Predicate::holds(g, i)) key[i] = low[i];
    for (int j = 0; j < g.nodes[i].inputs; ++j) {
      int& l = low[g.nodes[i].in[j]];
      l = key[i] < l ? key[i] : l;
    }
    last_key = key[i] > last_key ? key[i] : last_key;
    next[i] = head[key[i]];
    head[key[i]] = i;
    if (key[i] % 2 == 0 && is_kernel(g, i)) ++kernels[key[i] / 2];
  }

  constexpr void count_kernels(int level) {
    if (kernels[level] > 0 && kernels[level] >= least) number[level] = count++;
  }

  constexpr void next_key() {
    at = head[cursor];
    again = false;
    latest = 0;
    if (at < 0) ++cursor;
  }
  // The next node by key; a subgraph's nodes first to learn what all of them wait for, then once more.
  template <class Graph>
  constexpr void wait(const Graph& g) {
    const int i = at, unit = cursor % 2 == 0 ? number[cursor / 2] : -1;
    at = next[i];
    if (unit < 0 || !again) {
      int t = i;
      for (int j = 0; j < g.nodes[i].inputs; ++j) {
        const int x = g.nodes[i].in[j], from = is_fixed(g, x) ? x : time[x];
        t = from > t ? from : t;
      }
      t = after_accesses(g, i, t);
      if (unit < 0) finish(g, i, t);
      else latest = t > latest ? t : latest;
    } else {
      of[i] = unit;
      finish(g, i, latest);
    }
    if (at >= 0) return;
    if (unit >= 0 && !again) {
      again = true;
      at = head[cursor];
    } else {
      ++cursor;
    }
  }
  template <class Graph>
  constexpr void finish(const Graph& g, int i, int t) {
    time[i] = t;
    note_accesses(g, i, t);
    if (first[t] < 0) first[t] = i;
    else link[last[t]] = i;
    last[t] = i;
  }

  template <class Graph>
  constexpr void emit(const Graph& g) {
    if (at < 0) {
      if (is_fixed(g, cursor)) order[placed++] = cursor;
      at = first[cursor];
    } else {
      order[placed++] = at;
      if (int& s = seen[g.nodes[at].scope + 1]; of[at] >= 0 && s != of[at]) {
        s = of[at];
        ++marks;
      }
      at = link[at];
    }
    if (at < 0) ++cursor;
  }
};

template <class Predicate, int Least>
struct find_units {
  template <class Source>
  using state = unit_order<graph_type_of<Source>::node_capacity, graph_type_of<Source>::scope_capacity>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value, Least);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return st.template advance<Predicate>(Source::value, std::int64_t{work_per_node} * nodes);
  }
};

}  // namespace passes

// The subgraphs of a constant graph: count, and of[i] of each node.
template <class Source, int Least = 10, int Nodes = stage_nodes, class Supported = core_operations>
struct supported_subgraphs_of {
  static constexpr const auto& value = staged<passes::find_units<Supported, Least>, Source, Nodes>::value;
};

// Of a graph made at run time, or a small constant; `Supported` has holds(graph, node).
template <class Supported = core_operations, class Graph>
constexpr partition<Graph::node_capacity> supported_subgraphs(const Graph& g, int least = 10) {
  partition<Graph::node_capacity> r;
  passes::unit_order<Graph::node_capacity, Graph::scope_capacity> units;
  units.begin(g, least);
  units.template advance<Supported>(g, units.cost(g.node_count));
  r.count = units.count;
  for (int i = 0; i < g.node_count; ++i) {
    r.of[i] = units.of[i];
    if (r.of[i] >= 0 && passes::is_kernel(g, i)) ++r.operations[r.of[i]];
  }
  return r;
}

}  // namespace shardwise::inline v0_1

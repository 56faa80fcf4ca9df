// SPDX-License-Identifier: Apache-2.0
// partial_lower: supported subgraphs of a step, each in one run and of generated kernels; the rest as it was.
#pragma once

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/partition.hpp>
#include <shardwise/pass/communication/reorder.hpp>

namespace shardwise::inline v0_1 {

// What became of one subgraph. It is unit k of the lowered graph, and submod_k in its text.
struct lowered_subgraph {
  int first = 0, nodes = 0;     // in the graph in order, before kernels are fused: members are [first, first + nodes)
  int inputs = 0, outputs = 0;  // values that it takes from outside, and that are needed there
  int kernels_before = 0, kernels_after = 0;
};

template <int Count>
struct lowered_partition {
  lowered_subgraph unit[Count > 0 ? Count : 1]{};
  int count = 0;

  constexpr const lowered_subgraph* begin() const { return unit; }
  constexpr const lowered_subgraph* end() const { return unit + count; }
};

namespace passes {

// The nodes in the order that `units` found, subgraphs marked.
template <class To, int Nodes, int Scopes>
struct marking {
  To g{typename To::unfilled{}};
  int to[Nodes > 0 ? Nodes : 1];
  int seen[Scopes + 1], mark[Scopes + 1];
  int cursor;

  template <class From>
  constexpr void begin(const From& from) {
    begin_anew(g, from);
    for (int& t : to) t = -1;
    for (int& s : seen) s = -1;
    for (int& m : mark) m = -1;
    cursor = 0;
  }
  template <class From, class Units>
  constexpr void some(const From& from, const Units& units, int nodes) {
    const int n = from.node_count;
    if (cursor > n) return;
    for (; nodes > 0 && cursor < n; --nodes) {
      const int i = units.order[cursor++], unit = units.of[i];
      copy_node(g, from, i, to);
      if (unit < 0) continue;
      const int module = from.nodes[i].scope;
      if (seen[module + 1] != unit) {
        seen[module + 1] = unit;
        mark[module + 1] = g.scope_count;
        g.scopes[g.scope_count++] = {unit_name, unit, module};
      }
      g.nodes[to[i]].scope = mark[module + 1];
    }
    if (cursor < n) return;
    copy_outputs(g, from, to);
    number_batches(g);  // a subgraph may stand between members now
    ++cursor;
  }
};

template <class Units>
struct mark_units {
  template <class Source>
  using state =
      marking<resized<graph_type_of<Source>, graph_type_of<Source>::node_capacity, graph_type_of<Source>::spec_capacity,
                      graph_type_of<Source>::scope_capacity + Units::value.marks>,
              graph_type_of<Source>::node_capacity, graph_type_of<Source>::scope_capacity>;
  static constexpr int per_stage(int nodes) { return nodes; }
  template <class Source>
  static constexpr int stages(int nodes) {
    return graph_type_of<Source>::node_capacity / nodes + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    st.some(Source::value, Units::value, nodes);
  }
};

// Ordered: the graph in order and marked; Source: what became of it.
template <class Ordered, int Count>
struct count_units {
  struct progress {
    lowered_partition<Count> found;
    int reader[graph_type_of<Ordered>::node_capacity];   // the subgraph that read a value from outside last
    bool leaves[graph_type_of<Ordered>::node_capacity];  // something outside its subgraph reads it
    int before, after;
  };
  template <class Source>
  using state = progress;
  template <class Source>
  static constexpr int stages(int nodes) {
    return (graph_type_of<Ordered>::node_capacity + graph_type_of<Source>::node_capacity) / nodes + 1;
  }
  template <class Source>
  static constexpr void start(progress& st) {
    st.found = {};
    st.found.count = Count;
    st.before = st.after = 0;
    for (int& r : st.reader) r = -1;
    for (bool& l : st.leaves) l = false;
    begin(st, Ordered::value);
  }
  template <class Source>
  static constexpr void advance(progress& st, int nodes) {
    some(st, Ordered::value, Source::value, nodes);
  }

 private:
  template <class Graph>
  static constexpr void begin(progress& st, const Graph& g) {
    for (int k = 0; k < g.output_count; ++k) read_outside(st, g, g.outputs[k]);
  }
  template <class Graph>
  static constexpr void read_outside(progress& st, const Graph& g, int x) {
    const int unit = unit_of(g, x);
    if (unit < 0 || st.leaves[x]) return;
    st.leaves[x] = true;
    ++st.found.unit[unit].outputs;
  }
  template <class Before, class After>
  static constexpr void some(progress& st, const Before& b, const After& a, int nodes) {
    for (; nodes > 0 && st.before < b.node_count; --nodes) {
      const int i = st.before++, unit = unit_of(b, i);
      if (unit >= 0) {
        if (st.found.unit[unit].nodes++ == 0) st.found.unit[unit].first = i;
        st.found.unit[unit].kernels_before += is_kernel(b, i) ? 1 : 0;
      }
      for (int k = 0; k < b.nodes[i].inputs; ++k) {
        const int x = b.nodes[i].in[k];
        if (unit_of(b, x) == unit) continue;
        read_outside(st, b, x);
        if (unit < 0 || st.reader[x] == unit) continue;
        st.reader[x] = unit;
        ++st.found.unit[unit].inputs;
      }
    }
    for (; nodes > 0 && st.after < a.node_count; --nodes) {
      const int i = st.after++, unit = unit_of(a, i);
      if (unit >= 0 && is_kernel(a, i)) ++st.found.unit[unit].kernels_after;
    }
  }
};

}  // namespace passes

// Lowers the largest subgraphs of supported operations, each to one unit: one run of calls, whose pointwise chains, and
// what they follow, are generated kernels (see fuse_kernels). A subgraph of fewer than MinOps kernels is left alone, and
// so is all that is not supported: collectives and their waits, updates, lists, functions of the user. Values are the same
// as with fuse_kernels; nodes outside do not change. The price of one unit: what reads a value of a subgraph, a gradient's
// reduction for example, runs when all of it is done, and the collective's own schedule is lost.
// Supported chooses the operations: static constexpr bool holds(graph, node). What it may not admit does not compile.
template <class Supported = core_operations, int MinOps = 10>
struct partial_lower {
  using shardwise_pass = void;
  using writes_expressions = void;
  using key = struct partial_lowering;
  using apply_after = passes_list<cancel_redistributions, merge_common, fuse_pointwise, fuse_kernels>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;

 private:
  using generate = passes::fuse<true, true>;

  template <class Source, int Nodes>
  struct stages {
    struct live {
      static constexpr const auto& value = passes::eliminate_dead<Source>::value;
    };
    using units = staged<passes::find_units<Supported, MinOps>, live, Nodes>;

    struct refused {
      static constexpr auto value = [] {
        graph<1, 1> g;
        g.error = units::value.error;
        return g;
      }();
    };
    struct ordered {
      static constexpr const auto& value = staged<passes::mark_units<units>, live, Nodes>::value.g;
    };
    static constexpr int count = units::value.error ? 0 : units::value.count;
    using before = std::conditional_t<(count > 0), ordered, live>;

    static constexpr const auto& result() {
      if constexpr (units::value.error.what != problem::none) return refused::value;
      else if constexpr (count == 0) return live::value;
      else return generate::template in_stages<ordered, Nodes>::value;
    }
    struct after {
      static constexpr const auto& value = result();
    };
  };

 public:
  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
    static constexpr const auto& value = stages<Source, Nodes>::after::value;
  };
  template <class Source>
  struct run : in_stages<Source> {};

  // The graph that kernels are generated from: in order, subgraphs marked; and the facts of these.
  template <class Source>
  struct ordered {
    static constexpr const auto& value = stages<Source, stage_nodes>::before::value;
  };
  template <class Source>
  struct subgraphs {
    using of = stages<Source, stage_nodes>;
    static constexpr const auto& value =
        staged<passes::count_units<typename of::before, of::count>, typename of::after>::value.found;
  };

  // On a graph value, which needs room for the marks: a scope for each module that a subgraph meets, and one for those of
  // none.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    Graph next = g;
    if (const finding f = order(next)) return f;
    g = next;
    return generate::apply(g);
  }
  // The first half of it: order and marks.
  template <class Graph>
  static constexpr finding order(Graph& g) {
    passes::remove_dead(g);
    passes::unit_order<Graph::node_capacity, Graph::scope_capacity> units;
    units.begin(g, MinOps);
    units.template advance<Supported>(g, units.cost(Graph::node_capacity));
    if (units.error) return units.error;
    if (units.count == 0) return {};
    if (g.scope_count + units.marks > Graph::scope_capacity)
      return {problem::graph_full, -1, -1, -1, g.scope_count + units.marks, Graph::scope_capacity};
    passes::marking<Graph, Graph::node_capacity, Graph::scope_capacity> st;
    st.begin(g);
    st.some(g, units, g.node_count + 1);
    g = st.g;
    return {};
  }
};

}  // namespace shardwise::inline v0_1

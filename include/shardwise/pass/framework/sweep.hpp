// SPDX-License-Identifier: Apache-2.0
// sweep: a pass that goes through a graph once, node by node, and lets earlier nodes stand for later ones; in stages on
// constants, at once on graphs made at run time, by the same code.
#pragma once

#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/storage.hpp>
#include <shardwise/pass/framework/dce.hpp>

namespace shardwise::inline v0_1::passes {

// Removes dead nodes of a graph value; what eliminate_dead does for constants, in the same order.
template <class Graph>
constexpr void remove_dead(Graph& g) {
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  unsigned char live[capacity]{};
  int to[capacity]{};
  mark_live(g, live);
  int count = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (!live[i]) continue;
    node n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
    g.nodes[count] = n;
    to[i] = count++;
  }
  g.node_count = count;
  for (int k = 0; k < g.output_count; ++k) g.outputs[k] = to[g.outputs[k]];
}

// What a sweep knows when it comes to a node. Updates write into parameters and states where they lie, so what a later
// node may read in place of another depends on them.
template <class Graph, class Memory>
struct sweep_state {
  static constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;

  Graph g{typename Graph::unfilled{}};
  Memory memory{};
  int to[capacity]{};        // the node that stands for this one
  int root[capacity]{};      // the node whose storage this one's value lies in
  int uses[capacity]{};      // by nodes and outputs
  int last_use[capacity]{};  // of the value or of a view of it; node_count for outputs
  bool packed[capacity]{};   // a pack says where the value lies: it is computed there, and nothing stands for it
  int first_update = 0, last_update = -1;
  bool inputs_change = false;
  int cursor = 0;

  // `g` is filled, the rest as it was made.
  constexpr void begin() {
    const int n = g.node_count;
    first_update = n;
    inputs_change = writes_inputs(g);
    for (int i = 0; i < n; ++i) last_use[i] = i;
    for (int k = 0; k < g.output_count; ++k) {
      ++uses[g.outputs[k]];
      last_use[g.outputs[k]] = n;
    }
    for (int i = n - 1; i >= 0; --i) {
      const node& x = g.nodes[i];
      if (is_update(x.op)) {
        first_update = i;
        if (g.nodes[x.in[0]].op == op_code::redistribute) packed[x.in[0]] = true;  // rows that are written: nobody else's
      }
      const bool view = is_alias(x);
      for (int k = 0; k < x.inputs; ++k) {
        if (x.op == op_code::pack) packed[x.in[k]] = packed[computed_by(g, x.in[k])] = true;
        ++uses[x.in[k]];
        const int until = view && k == 0 ? last_use[i] : i;
        if (last_use[x.in[k]] < until) last_use[x.in[k]] = until;
      }
    }
  }

  constexpr bool is_alias(const node& x) const {
    return is_update(x.op) || (x.inputs > 0 && is_view(x, g.specs[g.nodes[x.in[0]].spec], g.specs[x.spec]));
  }
  // Whether an update may write into the storage of node i's value.
  constexpr bool may_change(int i) const {
    const op_code op = g.nodes[root[i]].op;
    return is_variable_leaf(op) || (op == op_code::input && inputs_change);
  }

  // All users of node i read node `by` instead.
  constexpr void replace(int i, int by) {
    to[i] = by;
    uses[by] += uses[i];
    if (last_use[by] < last_use[i]) last_use[by] = last_use[i];
    const node& x = g.nodes[i];
    for (int k = 0; k < x.inputs; ++k) release(x.in[k]);
  }
  // One use of node i ends; with its last use, a redistribution's own use of its operand does too.
  constexpr void release(int i) {
    while (--uses[i] == 0 && g.nodes[i].op == op_code::redistribute) i = g.nodes[i].in[0];
  }

  template <class Rules>
  constexpr void step() {
    const int i = cursor++;
    node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
    to[i] = i;
    root[i] = is_alias(n) ? root[n.in[0]] : i;
    Rules::visit(*this, i);
    if (is_update(n.op)) last_update = i;
  }
  constexpr void finish() {
    for (int k = 0; k < g.output_count; ++k) g.outputs[k] = to[g.outputs[k]];
  }
};

// Rules has memory<Nodes>, what it remembers, and visit(state, i), whose operands are up to date. It may have any(graph): where
// that says false, no visit would change a node, and the graph stays the constant that it is.
template <class Rules>
struct sweep {
  using shardwise_pass = void;

  template <class Graph>
  using state_of = sweep_state<Graph, typename Rules::template memory<Graph::node_capacity>>;

  static constexpr int step_cost = 100;  // statements
  template <class Source>
  using state = state_of<graph_type_of<Source>>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    copy_into(st.g, Source::value);
    st.begin();
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    for (stage_work work(nodes); st.cursor < st.g.node_count && work.take(step_cost);) st.template step<Rules>();
    if (st.cursor < st.g.node_count) return true;
    st.finish();
    return false;
  }

  template <class Source, int Nodes>
  struct swept {
    static constexpr const auto& value = staged<sweep, Source, Nodes>::value.g;
  };

  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
   private:
    static constexpr bool idle = [] {
      if constexpr (requires { Rules::any(Source::value); }) return !Rules::any(Source::value);
      else return false;
    }();
    using result = eliminate_dead<std::conditional_t<idle, Source, swept<Source, Nodes>>>;

   public:
    static constexpr const auto& value = result::value;
    static constexpr bool unchanged = idle && result::unchanged, all_live = true;
  };
  template <class Source>
  struct run : in_stages<Source> {};

  template <class Graph>
  static constexpr finding apply(Graph& g) {
    state_of<Graph> st;
    st.g = g;
    st.begin();
    while (st.cursor < g.node_count) st.template step<Rules>();
    st.finish();
    g = st.g;
    remove_dead(g);
    return {};
  }
};

}  // namespace shardwise::inline v0_1::passes

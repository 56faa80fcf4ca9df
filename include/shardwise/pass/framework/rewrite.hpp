// SPDX-License-Identifier: Apache-2.0
// rewriting: a pass that writes a graph anew, node by node; in stages on constants, at once on graphs made at run time.
#pragma once

#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/sweep.hpp>

namespace shardwise::inline v0_1::passes {

// What the result of a rewriting may need.
struct graph_room {
  int nodes, specs;
};

// The graph in the making: `to` is the new node of each old one, -1: not written yet.
template <class In, class Out>
struct rewrite_state {
  static constexpr int capacity = In::node_capacity > 0 ? In::node_capacity : 1;

  static constexpr int step_cost = 80;  // statements of one node's step, as a rule

  Out out{typename Out::unfilled{}};
  int to[capacity];
  int cursor;
  stage_work work{0};  // left in this stage

  constexpr void begin(const In& g) {
    begin_anew(out, g);
    for (int& t : to) t = -1;
    cursor = 0;
  }

  // Node i with its operands' new ids.
  constexpr int copy(builder& b, const In& g, int i) {
    if (b.node_count < b.node_capacity) {
      node& n = b.nodes[b.node_count];
      n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
    }
    return to[i] = b.node_count++;
  }
  constexpr void set_outputs(const In& g) { copy_outputs(out, g, to); }
};

// One operand, by default of the result's own spec.
constexpr int emit_one(builder& b, op_code op, int x, int spec_id) {
  node n = empty_node;
  n.op = op;
  n.inputs = 1;
  n.in[0] = x;
  n.scope = b.nodes[x].scope;
  n.spec = spec_id;
  return b.append(n);
}

// Whether a value has elements of its own that a pack or an update can place: not a leaf, a view or an update.
template <class Graph>
constexpr bool has_storage(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (!runs_kernel(n.op) || is_update(n.op) || !is_contiguous(g.specs[n.spec])) return false;
  return n.inputs == 0 || !may_view(n.op) || !is_view(n, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec]);
}
// The same, or one of several results, whose elements its operation's kernel writes: passes say where, updates and buckets do not,
// since they ask when a node writes.
template <class Graph>
constexpr bool has_place(const Graph& g, int i) {
  return g.nodes[i].op == op_code::getitem || has_storage(g, i);
}

// Storage of a constant graph, a constant of its own: it costs as much evaluation as all else that a rewriting begins with.
template <class Source>
inline constexpr auto found_storage = [] {
  storage_map<graph_type_of<Source>::node_capacity> m;
  find_storage(Source::value, m);
  return m;
}();
template <class Map>
constexpr void copy_storage(const Map& from, Map& to, int count) {
  constexpr int capacity = static_cast<int>(sizeof(to.owner) / sizeof(to.owner[0]));
  for (int i = 0; i < count; ++i) to.owner[i] = from.owner[i], to.within[i] = from.within[i];
  for (int i = count; i < capacity; ++i) to.owner[i] = i, to.within[i] = 0;
}
template <class State>
concept knows_storage = requires(State& st) { st.storage.owner; };

template <class State, class Graph>
constexpr void begin_rewriting(State& st, const Graph& g) {
  if constexpr (knows_storage<State>) find_storage(g, st.storage);
  st.begin(g);
}

// Steps until one says that no work is left, or `work` is done; whether any is left. One builder for all of them: to make one
// costs an evaluator more than most steps do.
template <class State, class Graph>
constexpr bool write_on(State& st, const Graph& g, stage_work work) {
  builder b = st.out.edit();
  bool left = true;
  constexpr int row = 8;  // steps that are paid together
  for (st.work = work; left && st.work.take(row * st.step_cost);)
    for (int k = 0; left && k < row; ++k) left = st.step(g, b);
  if (b.overflowed() && !b.error) b.error = {problem::graph_full, st.cursor - 1};
  st.out.finish(b);
  return left;
}

// Rules derive from rewriting<Rules> and have
//   template <class In, class Out> struct state : rewrite_state<In, Out>   with begin(g) and step(g, b) -> whether work is left;
//       `b` goes on with `out`; what costs more than some ten nodes' statements, a step takes from `work`; a member `storage`, a
//       storage_map, is filled before
//   static constexpr graph_room room(const auto& g)       how large the result is at most
// and may have prepared<Source>, a constant that begin(g, prepared) takes instead of finding it itself.
template <class Rules>
struct rewriting {
  using shardwise_pass = void;

  template <class Source>
  static constexpr graph_room room_of = Rules::room(Source::value);
  template <class Source>
  using state = typename Rules::template state<graph_type_of<Source>,
                                               resized<graph_type_of<Source>, room_of<Source>.nodes, room_of<Source>.specs>>;

  template <class Source, class State>
  static constexpr void start(State& st) {
    if constexpr (knows_storage<State>) copy_storage(found_storage<Source>, st.storage, Source::value.node_count);
    if constexpr (requires { Rules::template prepared<Source>; }) st.begin(Source::value, Rules::template prepared<Source>);
    else st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return write_on(st, Source::value, stage_work(nodes));
  }

  template <class Source, int Nodes>
  struct rewritten {
    static constexpr const auto& value = staged<rewriting, Source, Nodes>::value.out;
  };
  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
    static constexpr const auto& value = eliminate_dead<rewritten<Source, Nodes>>::value;
    static constexpr bool all_live = true;
  };
  template <class Source>
  struct run : in_stages<Source> {};

  // A result that is larger than the graph's capacity is refused.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    typename Rules::template state<Graph, resized<Graph, 3 * Graph::node_capacity + 64, 2 * Graph::spec_capacity + 64>> st;
    begin_rewriting(st, g);
    write_on(st, g, stage_work::all());
    if (st.out.error) return st.out.error;
    remove_dead(st.out);
    if (st.out.node_count > Graph::node_capacity || st.out.spec_count > Graph::spec_capacity)
      return {problem::graph_full, -1, -1, -1, st.out.node_count, Graph::node_capacity};
    copy_into(g, st.out);
    return {};
  }
};

}  // namespace shardwise::inline v0_1::passes

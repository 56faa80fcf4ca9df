// SPDX-License-Identifier: Apache-2.0
// reorder: passes that move nodes and change nothing else: a wait behind every collective, an order, the graph in it.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/waits.hpp>
#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1::passes {

template <class To, class From>
constexpr void copy_node(To& r, const From& g, int i, int* to) {
  node& n = r.nodes[r.node_count];
  n = g.nodes[i];
  for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
  to[i] = r.node_count++;
}

// --- a wait behind every collective ---------------------------------------------------------------------------------

// Collectives that nothing waits for, marked; how many they are.
template <class Graph>
constexpr int mark_unawaited(const Graph& g, unsigned char* unawaited) {
  int count = 0;
  for (int i = 0; i < g.node_count; ++i) {
    unawaited[i] = is_collective(g, i);
    count += unawaited[i];
  }
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != op_code::wait) continue;
    const int c = collective_of(g, i);
    if (c < 0 || !unawaited[c]) continue;
    unawaited[c] = 0;
    --count;
  }
  return count;
}
template <class Graph>
constexpr int count_unawaited(const Graph& g) {
  unsigned char unawaited[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
  return mark_unawaited(g, unawaited);
}

template <class To, int Nodes>
struct inserting {
  To g{typename To::unfilled{}};
  int to[Nodes > 0 ? Nodes : 1]{};
  unsigned char unawaited[Nodes > 0 ? Nodes : 1]{};
  int cursor = 0;
};

// Every collective that nothing waits for is followed by its wait, which all others read in its place; as far as there
// is room in the graph. So a collective starts where it stands and is done right behind. Those of a batch stand behind its last
// member.
struct insert_waits {
  template <class Source>
  using state =
      inserting<resized<graph_type_of<Source>, graph_type_of<Source>::node_capacity + count_unawaited(Source::value),
                        graph_type_of<Source>::spec_capacity>,
                graph_type_of<Source>::node_capacity>;

  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g) {
    begin_anew(st.g, g);
    mark_unawaited(g, st.unawaited);
  }
  template <class State, class Graph>
  static constexpr bool step(State& st, const Graph& g, stage_work work) {
    const int n = g.node_count;
    while (st.cursor < n && work.take(30)) {
      const int i = st.cursor++;
      copy_node(st.g, g, i, st.to);
      if (batch_number(g.nodes[i]) == 0) {
        if (st.unawaited[i]) insert(st, g, i);
      } else if (i + 1 == batch_end(g, i)) {
        each_member(g, i, [&](int j) {
          if (st.unawaited[j]) insert(st, g, j);
        });
      }
    }
    if (st.cursor < n) return true;
    copy_outputs(st.g, g, st.to);
    return false;
  }
  template <class State, class Graph>
  static constexpr void insert(State& st, const Graph& g, int i) {
    if (st.g.node_count + g.node_count - st.cursor >= decltype(st.g)::node_capacity) return;
    node& w = st.g.nodes[st.g.node_count];
    w = empty_node;
    w.op = op_code::wait;
    w.inputs = 1;
    w.in[0] = st.to[i];
    w.spec = g.nodes[i].spec;
    w.scope = g.nodes[i].scope;
    st.to[i] = st.g.node_count++;
  }

  template <class Source, class State>
  static constexpr void start(State& st) {
    begin(st, Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return step(st, Source::value, stage_work(nodes));
  }
};

// --- an order -------------------------------------------------------------------------------------------------------

// The nodes in another order, and what a Rule remembers while it makes it. Law: members of a batch come one right after the
// other, in their order. A Rule has memory<Graph>,
// start(state, graph), and advance(state, graph, work), which goes on while there is work and in the end sets `done`;
// check(graph) says what it cannot order.
template <class Graph, class Memory>
struct ordering {
  static constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;

  int order[capacity]{};
  unsigned char emitted[capacity]{};
  int count = 0;
  int cursor = 0;
  bool done = false;
  Memory memory{};

  constexpr void emit(int i) {
    emitted[i] = 1;
    order[count++] = i;
  }
};

// A Rule whose memory has `walk.storage` finds the graph's storage there.
template <class State>
concept walks_storage = requires(State& st) { st.memory.walk.storage.owner; };

template <class Rule, class Graph>
using ordering_of = ordering<Graph, typename Rule::template memory<Graph>>;

template <class Rule>
struct find_order {
  template <class Source>
  using state = ordering_of<Rule, graph_type_of<Source>>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    if constexpr (walks_storage<State>)
      copy_storage(found_storage<Source>, st.memory.walk.storage, Source::value.node_count);
    Rule::start(st, Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    Rule::advance(st, Source::value, stage_work(nodes));
    return !st.done;
  }
};

// --- the graph in it ------------------------------------------------------------------------------------------------

template <class Graph, int Nodes>
struct permuting {
  Graph g{typename Graph::unfilled{}};
  int to[Nodes > 0 ? Nodes : 1]{};
  int cursor = 0;
  int batches = 0;  // numbered anew, in their new order
};

// Order::value.order lists all nodes of Source::value.
template <class Order>
struct permute_nodes {
  template <class Source>
  using state = permuting<graph_type_of<Source>, graph_type_of<Source>::node_capacity>;

  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g) {
    begin_anew(st.g, g);
  }
  template <class State, class Graph>
  static constexpr bool step(State& st, const Graph& g, const int* order, stage_work work) {
    const int n = g.node_count;
    for (; st.cursor < n && work.take(20); ++st.cursor) {
      const int i = order[st.cursor];
      copy_node(st.g, g, i, st.to);
      if (batch_number(g.nodes[i]) == 0) continue;
      if (!joins_batch(g, i)) ++st.batches;
      set_batch(st.g.nodes[st.to[i]], st.batches);
    }
    if (st.cursor < n) return true;
    copy_outputs(st.g, g, st.to);
    return false;
  }

  template <class Source, class State>
  static constexpr void start(State& st) {
    begin(st, Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return step(st, Source::value, Order::value.order, stage_work(nodes));
  }
};

// A pass that inserts the waits that are missing and puts the nodes in the order that Rule gives.
template <class Rule>
struct reordering {
  using shardwise_pass = void;

 private:
  template <class Source, int Nodes>
  struct awaited {
    static constexpr const auto& value = staged<insert_waits, Source, Nodes>::value.g;
  };
  template <class Source, int Nodes>
  struct refused {
    static constexpr finding value = Rule::check(Source::value);
  };
  template <class Source, int Nodes>
  struct permuted {
    using from = awaited<Source, Nodes>;
    static constexpr const auto& value = staged<permute_nodes<staged<find_order<Rule>, from, Nodes>>, from, Nodes>::value.g;
  };
  template <class Source>
  struct with_finding {
    static constexpr auto value = [] {
      graph<1, 1> g;
      g.error = Rule::check(Source::value);
      return g;
    }();
  };
  template <class Source, int Nodes>
  static constexpr const auto& outcome() {
    if constexpr (refused<Source, Nodes>::value.what != problem::none) return with_finding<Source>::value;
    else return permuted<Source, Nodes>::value;
  }

 public:
  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
    static constexpr const auto& value = outcome<Source, Nodes>();
  };
  template <class Source>
  struct run : in_stages<Source> {};

  template <class Graph>
  static constexpr finding apply(Graph& g) {
    if (const finding f = Rule::check(g)) return f;
    inserting<Graph, Graph::node_capacity> with;
    insert_waits::begin(with, g);
    insert_waits::step(with, g, stage_work::all());
    ordering_of<Rule, Graph> order;
    if constexpr (walks_storage<ordering_of<Rule, Graph>>) find_storage(with.g, order.memory.walk.storage);
    Rule::start(order, with.g);
    while (!order.done) Rule::advance(order, with.g, stage_work::all());
    permuting<Graph, Graph::node_capacity> in_order;
    using permutation = permute_nodes<void>;
    permutation::begin(in_order, with.g);
    permutation::step(in_order, with.g, order.order, stage_work::all());
    g = in_order.g;
    return {};
  }
};

}  // namespace shardwise::inline v0_1::passes

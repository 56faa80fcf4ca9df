// SPDX-License-Identifier: Apache-2.0
// schedule_comm_wait, sink_waits, raise_comms: collectives start early and are waited for late; the same bits.
#pragma once

#include <shardwise/graph/storage.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/communication/reorder.hpp>

namespace shardwise::inline v0_1 {

// Keys: what joins reductions into buckets, and what moves their waits.
struct comm_fusion;
struct comm_wait_schedule;

namespace passes {

// What rules of a reordering that asks nothing of a graph, and keeps nothing of it, share.
struct admits_all {
  template <class Graph>
  static constexpr finding check(const Graph&) {
    return {};
  }
  template <class State, class Graph>
  static constexpr void start(State&, const Graph&) {}
};

// Waits, and with Views also the views of what was waited for, are held back until another node reads them.
template <bool Views>
struct sink_rules : admits_all {
  template <class Graph>
  struct memory {
    unsigned char held[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
  };

  template <class State, class Graph>
  static constexpr void advance(State& st, const Graph& g, stage_work work) {
    const int n = g.node_count;
    while (st.cursor < n && work.take(40)) {
      const int i = st.cursor++;
      const node& x = g.nodes[i];
      if (x.op == op_code::wait || (Views && x.inputs > 0 && st.memory.held[x.in[0]] && may_view(x.op) &&
                                    is_view(x, g.specs[g.nodes[x.in[0]].spec], g.specs[x.spec]))) {
        st.memory.held[i] = 1;
        continue;
      }
      release(st, g, i);
    }
    if (st.cursor < n || st.done) return;
    for (int i = 0; i < n; ++i)
      if (!st.emitted[i]) release(st, g, i);
    st.done = true;
  }

 private:
  // What node i reads comes first, in program order; then the node. Of a batch, what any member reads, and then all of them.
  template <class State, class Graph>
  static constexpr void release(State& st, const Graph& g, int i) {
    if (batch_number(g.nodes[i]) == 0) {
      release_operands(st, g, i);
      return st.emit(i);
    }
    if (st.emitted[i]) return;
    each_member(g, i, [&](int j) { release_operands(st, g, j); });
    each_member(g, i, [&](int j) { st.emit(j); });
  }
  template <class State, class Graph>
  static constexpr void release_operands(State& st, const Graph& g, int i) {
    const node& x = g.nodes[i];
    for (;;) {
      int next = -1;
      for (int k = 0; k < x.inputs; ++k)
        if (!st.emitted[x.in[k]] && (next < 0 || x.in[k] < next)) next = x.in[k];
      if (next < 0) break;
      release(st, g, next);
    }
  }
};

struct schedule_rules : sink_rules<true> {
  // Every collective has users, and every wait has a collective or an input that it waits for.
  template <class Graph>
  static constexpr finding check(const Graph& g) {
    unsigned char used[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};
    for (int k = 0; k < g.output_count; ++k) used[g.outputs[k]] = 1;
    for (int i = g.node_count - 1; i >= 0; --i) {
      const node& x = g.nodes[i];
      if (x.op == op_code::wait && awaited_by(g, i) < 0) return {problem::comm_wait_too_far, i};
      // a wait alone is no use
      if (x.op == op_code::wait ? used[i] != 0 : true)
        for (int k = 0; k < x.inputs; ++k) used[x.in[k]] = 1;
      if (!used[i] && is_collective(g, i)) return {problem::comm_no_output, i};
    }
    return {};
  }
};

// Calls f(i, after) for every collective i in program order, as long as there is work. `after` is what must have been beside
// its operand, -1: nothing: the last node before it that writes the leaf which it reads, or touches the leaf that its result
// is computed in. `storage` is filled before.
template <int Nodes>
struct collective_walk {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  storage_map<Nodes> storage;
  int written[capacity]{}, touched[capacity]{};  // by owner, plus one
  int cursor = 0;

  // Whether nodes are left.
  template <class Graph, class F>
  constexpr bool some(const Graph& g, stage_work& work, F&& f) {
    for (; cursor < g.node_count && work.take(80); ++cursor) visit(g, cursor, f);
    return cursor < g.node_count;
  }
  // The last node so far that writes into storage `owner`, -1: none.
  constexpr int last_write(int owner) const { return written[owner] - 1; }

 private:
  template <class Graph, class F>
  constexpr void visit(const Graph& g, int i, F&& f) {
    const node& x = g.nodes[i];
    const int own = storage.owner[i];
    const bool in_leaf = own != i && (is_leaf(g.nodes[own].op) || places_leaves(g.nodes[own]));
    if (is_collective(g, i)) {
      const int writer = written[storage.owner[x.in[0]]] - 1, user = in_leaf ? touched[own] - 1 : -1;
      f(i, writer > user ? writer : user);
    }
    if (x.op == op_code::pack || is_leaf(x.op)) return;
    for (int k = 0; k < x.inputs; ++k) {
      touched[storage.owner[x.in[k]]] = i + 1;
      if (writes_operand(x, k)) written[storage.owner[x.in[k]]] = i + 1;
    }
    const bool view = x.inputs > 0 && may_view(x.op) && is_view(x, g.specs[g.nodes[x.in[0]].spec], g.specs[x.spec]);
    if (in_leaf && runs_kernel(x.op) && !view) touched[own] = written[own] = i + 1;
  }
};

struct raise_rules : admits_all {
  template <class Graph>
  struct memory {
    int queue[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};  // collectives in program order
    int after[Graph::node_capacity > 0 ? Graph::node_capacity : 1]{};  // what must have been, -1: none
    int count = 0, next = 0;
    collective_walk<Graph::node_capacity> walk;
  };

  template <class State, class Graph>
  static constexpr void advance(State& st, const Graph& g, stage_work work) {
    auto& m = st.memory;
    const int n = g.node_count;
    const auto queue = [&m](int i, int after) {
      m.after[m.count] = after;
      m.queue[m.count++] = i;
    };
    if (m.walk.some(g, work, queue)) return;
    while (st.cursor < n && work.take(40)) {
      const int i = st.cursor++;
      if (!is_collective(g, i)) st.emit(i);
      while (m.next < m.count && ready(st, g)) st.emit(m.queue[m.next++]);
    }
    st.done = st.cursor == n;
  }

 private:
  template <class State, class Graph>
  static constexpr bool ready(const State& st, const Graph& g) {
    const auto& m = st.memory;
    const int first = m.queue[m.next], end = batch_end(g, first);
    bool all = true;  // the rest of a batch stands behind in the queue, and nothing comes between
    for (int k = m.next; all && k < m.count && m.queue[k] < end; ++k)
      all = st.emitted[g.nodes[m.queue[k]].in[0]] && (m.after[k] < 0 || st.emitted[m.after[k]]);
    return all;
  }
};

// Behind node i come, in program order, the collectives whose last dependency it is. A batch comes behind the last dependency of
// any member, and what depends on one comes behind the last of them.
struct expedite_rules : admits_all {
  template <class Graph>
  struct memory {
    static constexpr int n = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
    int first[n]{}, last[n]{}, next[n]{};  // 1 + node: lists by dependency; of a batch its first member
    int latest[n]{};                       // 1 + node: of the members of a batch so far, by its first one
    collective_walk<Graph::node_capacity> walk;
  };

  template <class State, class Graph>
  static constexpr void advance(State& st, const Graph& g, stage_work work) {
    auto& m = st.memory;
    const auto list = [&m, &g](int i, int after) {
      int behind = after > g.nodes[i].in[0] ? after : g.nodes[i].in[0];
      if (batch_number(g.nodes[i]) != 0) {
        const int begin = batch_begin(g, i);
        if (m.latest[begin] < behind + 1) m.latest[begin] = behind + 1;
        if (i + 1 != batch_end(g, i)) return;
        behind = m.latest[begin] - 1;
        i = begin;
      }
      behind = batch_end(g, behind) - 1;
      if (m.first[behind] == 0) m.first[behind] = i + 1;
      else m.next[m.last[behind] - 1] = i + 1;
      m.last[behind] = i + 1;
    };
    if (m.walk.some(g, work, list)) return;
    while (st.cursor < g.node_count && work.take(40)) {
      const int i = st.cursor++;
      if (!is_collective(g, i)) emit(st, g, i);
    }
    st.done = st.cursor == g.node_count;
  }

 private:
  template <class State, class Graph>
  static constexpr void emit(State& st, const Graph& g, int i) {
    each_member(g, i, [&](int j) { st.emit(j); });
    for (int c = st.memory.first[batch_end(g, i) - 1]; c != 0; c = st.memory.next[c - 1]) emit(st, g, c - 1);
  }
};

}  // namespace passes

// Law of all of them: the nodes and their operands stay; only the order of nodes changes, so every rank computes the same
// bits. But for expedite_comms, collectives keep their order among themselves. A collective without a wait gets one. The
// price: what is on its way lives longer.

// Each wait, and the views of what it waited for, moves to right before the first node that uses them. Where reductions
// are joined, that comes first.
struct schedule_comm_wait : passes::reordering<passes::schedule_rules> {
  using moves_collectives = void;
  using key = comm_wait_schedule;
  using apply_after = passes_list<comm_fusion>;
  using verified_with_next = void;
  using preserves = passes_list<kept::collectives, kept::outputs, kept::updates>;
};

// Each wait moves to right before the first node that reads it.
struct sink_waits : passes::reordering<passes::sink_rules<false>> {
  using moves_collectives = void;
  using verified_with_next = void;
  using preserves = passes_list<kept::collectives, kept::outputs, kept::updates>;
};

// Each collective moves to right behind the last node that it depends on, or the collective before.
struct raise_comms : passes::reordering<passes::raise_rules> {
  using moves_collectives = void;
  using verified_with_next = void;
  using preserves = passes_list<kept::collectives, kept::outputs, kept::updates>;
};

// Each collective moves to right behind the last node that it depends on, whatever that does to their order, which is
// still one for all ranks: gradients are summed as backward makes them, not in the order of the parameters.
struct expedite_comms : passes::reordering<passes::expedite_rules> {
  using moves_collectives = void;
  using apply_after = passes_list<comm_fusion>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1

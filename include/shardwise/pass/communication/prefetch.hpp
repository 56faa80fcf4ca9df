// SPDX-License-Identifier: Apache-2.0
// prefetch: sharded parameters are gathered while the groups before them compute; sums of gradients travel while the groups
// behind them do.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/pass/communication/batch_collectives.hpp>
#include <shardwise/pass/communication/waits.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

// A unit is an all-gather of parameters' shards, or again of what a group has kept of them over an inner axis, a batch or a
// collective by itself; units are numbered by their first uses, and known by their first node. Unit k is issued right before the first use of unit k - N, the first N of them at the beginning; but
// not before what was gathered earlier of the same parameters has been read for the last time, nor before a write of them that it
// must see. It is issued at its own first use at the latest, and before a write that it must not see.
//
// A scattered sum stands where it stood. Its wait, and with it what only moves, copies or scales the result, is held back until
// something else reads it, or the next scattered sum on its axis is issued.
template <int N>
struct prefetch_rules : admits_all {
  enum phase : unsigned char { look_back, look_ahead, run };

  template <class Graph>
  struct memory {
    static constexpr int n = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
    phase at = look_back;
    int first_use[n]{}, last_use[n]{};  // of a value or of a view of it, the graph's size: none, or given out
    int unit[n]{};                      // units by number
    int units = 0, next = 0, due = N - 1;
    int used_first[n]{};         // by node: 1 + the number of the last unit whose first use it is
    int before[n]{};             // by unit: 1 + the unit that gathered the same parameter before
    int after[n]{};              // by unit: 1 + the last write that it must see
    unsigned char gathers[n]{};  // 1: of a unit, 2: its place has been passed
    int reader[n]{};             // by owner: 1 + the last unit that reads it
    unsigned char held[n]{};
    int sum[n]{};  // of what is held: 1 + the scattered sum that it comes from, the first node of its batch
    int first_held[n]{}, last_held[n]{}, next_held[n]{};  // 1 + node: lists by that
    int last_sum[max_axes]{};                             // 1 + the scattered sum issued last
    collective_walk<Graph::node_capacity> walk;
  };

  template <class State, class Graph>
  static constexpr void advance(State& st, const Graph& g, stage_work work) {
    auto& m = st.memory;
    const int n = g.node_count;
    if (m.at == look_back) {
      if (st.cursor == 0) {
        work.take(10 * n);
        for (int i = 0; i < n; ++i) m.first_use[i] = n, m.last_use[i] = -1;
        for (int k = 0; k < g.output_count; ++k) m.last_use[g.outputs[k]] = n;
      }
      for (; st.cursor < n && work.take(40); ++st.cursor) see_uses(m, g, n - 1 - st.cursor);
      if (st.cursor < n) return;
      m.at = look_ahead;
    }
    if (m.at == look_ahead) {
      if (m.walk.some(g, work, [&](int i, int after) { see_collective(m, g, i, after); })) return;
      work.take(20 * n);
      number_units(m, g);
      st.cursor = 0;
      m.at = run;
      issue(st, g);
    }
    while (st.cursor < n && work.take(80)) visit(st, g, st.cursor++);
    if (st.cursor < n || st.done) return;
    for (int i = 0; i < n; ++i)
      if (!st.emitted[i]) release(st, g, i);
    st.done = true;
  }

 private:
  template <class Graph>
  static constexpr bool is_alias(const Graph& g, int i) {
    const node& x = g.nodes[i];
    return x.inputs > 0 && may_view(x.op) && is_view(x, g.specs[g.nodes[x.in[0]].spec], g.specs[x.spec]);
  }
  template <class Memory, class Graph>
  static constexpr bool in_leaf(const Memory& m, const Graph& g, int i) {
    const node& own = g.nodes[m.walk.storage.owner[i]];
    return is_leaf(own.op) || places_leaves(own);
  }

  template <class Memory, class Graph>
  static constexpr void see_uses(Memory& m, const Graph& g, int i) {
    const node& x = g.nodes[i];
    const bool alias = is_alias(g, i);
    for (int k = 0; k < x.inputs; ++k) {
      const bool passes_on = alias && k == 0;
      const int first = passes_on ? m.first_use[i] : i, last = passes_on ? m.last_use[i] : i;
      if (first < m.first_use[x.in[k]]) m.first_use[x.in[k]] = first;
      if (last > m.last_use[x.in[k]]) m.last_use[x.in[k]] = last;
    }
  }

  // Collectives in program order, and what they must come after; see collective_walk.
  template <class Memory, class Graph>
  static constexpr void see_collective(Memory& m, const Graph& g, int i, int after) {
    const int own = batch_begin(g, i);
    if (m.after[own] < after + 1) m.after[own] = after + 1;
    if (own != i || shardwise::detail::transition_at(g, i) != transition::all_gather) return;
    bool parameters = true;
    each_member(g, i, [&](int j) {
      const node& from = g.nodes[m.walk.storage.owner[g.nodes[j].in[0]]];
      const bool kept = unsharding_of(g.nodes[j]) == unsharding::again && unsharding_of(from) == unsharding::kept;
      parameters = parameters && (from.op == op_code::param || kept || casts_parameter(from));
    });
    if (!parameters) return;
    // one that is cast before it is gathered is cast when it is issued: it must see the writes that the cast did
    each_member(g, i, [&](int j) {
      const int from = m.walk.storage.owner[g.nodes[j].in[0]];
      if (!casts_parameter(g.nodes[from])) return;
      if (const int write = m.walk.last_write(m.walk.storage.owner[g.nodes[from].in[0]]); m.after[own] < write + 1)
        m.after[own] = write + 1;
    });
    m.unit[m.units++] = i;
    each_member(g, i, [&](int j) {
      m.gathers[j] = 1;
      int& last = m.reader[m.walk.storage.owner[g.nodes[j].in[0]]];
      if (last > 0 && last != i + 1) m.before[i] = last;
      last = i + 1;
    });
  }

  // Sorts units by their first uses, those of one use by their places.
  template <class Memory, class Graph>
  static constexpr void number_units(Memory& m, const Graph& g) {
    const int n = g.node_count;
    int* const first = m.first_held;  // 1 + unit, lists by first use; not in use yet
    int* const next = m.next_held;
    int unused = 0;
    for (int k = m.units; k-- > 0;) {
      const int u = m.unit[k];
      int use = n;
      each_member(g, u, [&](int j) { use = m.first_use[j] < use ? m.first_use[j] : use; });
      int& head = use < n ? first[use] : unused;
      next[u] = head;
      head = u + 1;
    }
    m.units = 0;
    for (int i = 0; i <= n; ++i) {
      for (int u = i < n ? first[i] : unused; u > 0; u = next[u - 1]) {
        m.unit[m.units++] = u - 1;
        if (i < n) m.used_first[i] = m.units;
      }
      if (i < n) first[i] = 0;
    }
    for (int i = 0; i < n; ++i) next[i] = m.reader[i] = 0;
  }

  // --- the order

  template <class State, class Graph>
  static constexpr void visit(State& st, const Graph& g, int i) {
    auto& m = st.memory;
    if (st.emitted[i]) return;
    if (m.gathers[i] != 0) {
      m.gathers[i] = 2;
      m.reader[m.walk.storage.owner[g.nodes[i].in[0]]] = batch_begin(g, i) + 1;
      return;
    }
    if (is_held(m, g, i)) return hold(m, g, i);
    if (m.used_first[i] > 0 && m.due < m.used_first[i] - 1 + N) m.due = m.used_first[i] - 1 + N;
    issue(st, g);
    const node& x = g.nodes[i];
    for (int k = 0; k < x.inputs; ++k)
      if (writes_operand(x, k)) release_readers(st, g, m.walk.storage.owner[x.in[k]]);
    if (m.walk.storage.owner[i] != i && in_leaf(m, g, i)) release_readers(st, g, m.walk.storage.owner[i]);
    release(st, g, i);
    issue(st, g);
  }
  // What was to be gathered before a write is.
  template <class State, class Graph>
  static constexpr void release_readers(State& st, const Graph& g, int owner) {
    if (const int u = st.memory.reader[owner] - 1; u >= 0 && !st.emitted[u]) release(st, g, u);
  }

  template <class State, class Graph>
  static constexpr void issue(State& st, const Graph& g) {
    auto& m = st.memory;
    for (; m.next < m.units && m.next <= m.due; ++m.next) {
      const int u = m.unit[m.next];
      if (st.emitted[u]) continue;
      if (!is_ready(st, g, u)) return;
      release(st, g, u);
    }
  }
  template <class State, class Graph>
  static constexpr bool is_ready(const State& st, const Graph& g, int u) {
    const auto& m = st.memory;
    bool ready = m.after[u] == 0 || st.emitted[m.after[u] - 1];
    if (m.before[u] > 0)
      each_member(g, m.before[u] - 1, [&](int j) {
        const int last = m.last_use[j];
        ready = ready && (last < 0 || last >= g.node_count || st.emitted[last]);
      });
    each_member(g, u, [&](int j) {
      int x = g.nodes[j].in[0];
      while (!st.emitted[x] && is_alias(g, x)) x = g.nodes[x].in[0];
      ready = ready &&
              (st.emitted[x] || is_leaf(g.nodes[x].op) || (casts_parameter(g.nodes[x]) && in_leaf(m, g, g.nodes[x].in[0])));
    });
    return ready;
  }

  template <class Memory, class Graph>
  static constexpr bool is_held(const Memory& m, const Graph& g, int i) {
    const node& x = g.nodes[i];
    if (x.op == op_code::wait) return true;
    if (x.inputs != 1 || !m.held[x.in[0]]) return false;
    if (is_alias(g, i)) return true;
    if (m.sum[x.in[0]] == 0 || in_leaf(m, g, i) || in_leaf(m, g, x.in[0])) return false;
    return x.op == op_code::scale || x.op == op_code::contiguous ||
           shardwise::detail::transition_at(g, i) == transition::all_reduce;
  }
  template <class Memory, class Graph>
  static constexpr void hold(Memory& m, const Graph& g, int i) {
    m.held[i] = 1;
    int from = m.sum[g.nodes[i].in[0]];
    if (g.nodes[i].op == op_code::wait)
      if (const int c = collective_of(g, i); c >= 0 && shardwise::detail::transition_at(g, c) == transition::reduce_scatter)
        from = batch_begin(g, c) + 1;
    m.sum[i] = from;
    if (from == 0) return;
    if (m.first_held[from - 1] == 0) m.first_held[from - 1] = i + 1;
    else m.next_held[m.last_held[from - 1] - 1] = i + 1;
    m.last_held[from - 1] = i + 1;
  }

  // Node i, with its batch, behind what they read.
  template <class State, class Graph>
  static constexpr void release(State& st, const Graph& g, int i) {
    if (st.emitted[i]) return;
    each_member(g, i, [&](int j) {
      const node& x = g.nodes[j];
      for (;;) {
        int next = -1;
        for (int k = 0; k < x.inputs; ++k)
          if (!st.emitted[x.in[k]] && (next < 0 || x.in[k] < next)) next = x.in[k];
        if (next < 0) break;
        release(st, g, next);
      }
    });
    if (shardwise::detail::transition_at(g, i) == transition::reduce_scatter) {
      int& last = st.memory.last_sum[attributes_of<redistribute_attributes>(g.nodes[i].a).axis];
      if (last > 0) finish_sum(st, g, last - 1);
      last = batch_begin(g, i) + 1;
    }
    each_member(g, i, [&](int j) { st.emit(j); });
  }
  // The waits for a scattered sum, and what is held behind them, sums on other axes included; but not the waits for those.
  template <class State, class Graph>
  static constexpr void finish_sum(State& st, const Graph& g, int own) {
    auto& m = st.memory;
    for (int h = m.first_held[own]; h > 0; h = m.next_held[h - 1]) {
      const int i = h - 1;
      if (st.emitted[i] || !st.emitted[g.nodes[i].in[0]]) continue;
      if (g.nodes[i].op == op_code::wait)
        if (const int c = collective_of(g, i); c >= 0 && batch_begin(g, c) != own) continue;
      release(st, g, i);
    }
  }
};

// Known by this.
struct prefetching;

}  // namespace passes

// Gathers of sharded parameters are issued N groups ahead of their use, in both phases, and waited for where they are used;
// scattered sums of gradients are waited for where the next one is issued, or where something reads them. Law: the nodes and their
// operands stay, and all ranks issue collectives in one order: the same bits. The price: at most N gathered groups more at a time,
// and the gradients of one group until their sum has been sent.
template <int N = 1>
struct prefetch : passes::reordering<passes::prefetch_rules<(N < 1 ? 1 : N)>> {
  using moves_collectives = void;
  static_assert(raise<(N < 1 ? problem::prefetch_count : problem::none), have<N>, want<1>>::ok);
  using key = passes::prefetching;
  using apply_after = passes_list<comm_fusion, batch_collectives>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1

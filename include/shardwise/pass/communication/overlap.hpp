// SPDX-License-Identifier: Apache-2.0
// reorder_compute_for_overlap: kernels that do not need a collective run while it is under way; the same bits.
#pragma once

#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/communication/reorder.hpp>
#include <shardwise/graph/checkpoint.hpp>
#include <shardwise/pass/analysis/run_time.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

// Collectives keep their order; they are numbered in it, a batch by its first member as one. Parameters and states are overwritten where they lie, so an
// update comes behind all that touches such storage before it, and what touches it later comes behind the update.
template <class Model>
struct overlap_rules {
  // Nodes that are considered for the time of one collective, those that feed the earliest collectives first: of thousands,
  // looking at all for each collective would cost compilation its square.
  static constexpr int most_looked_at = 128;

  enum phase : unsigned char { look_back, look_ahead, find_needed, run_needed, fill_gap, run_blocked, run_rest };

  template <class Graph>
  struct memory {
    static constexpr int n = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
    int comm[n]{};     // node ids of the collectives, of batches their first members'
    int depends[n]{};  // the last collective that a node needs, -1: none; a collective needs itself
    int feeds[n]{};    // the first collective that needs a node; their number: none
    int needed[n]{};   // 1 + the collective that a node has been found necessary for
    int behind[n]{};   // of storage's touches before an update, or of updates before another touch: how many
    int touch[n]{}, update[n]{};
    int touches = 0, updates = 0, touches_done = 0, updates_done = 0;
    int next[n + 1]{}, next_fed[n + 1]{};  // nodes to come, in program order and by what they feed; [n] is the first
    int stack[n]{};
    int depth = 0;
    // What the current collective needs and has not come: two heaps, the first node in front, from the two ends of one array: `free`
    // that do not need the collective before, `blocked_nodes` that do.
    int heap[n]{};
    unsigned char changes[n]{};  // whether a node's storage is a parameter's or a state's
    int comms = 0, current = 0, walk = 0;
    int free = 0, blocked_nodes = 0;
    int looked = 0;
    int deepest = -1, deepest_update = -1;  // collectives that touches and updates so far depend on
    int first_fed = 0, first_fed_touch = 0;
    double computed = 0, rolled_over = 0;
    double before = 0;  // what the collective before the current one takes
    phase at = look_back;
    bool blocked = false;
    bool inputs = false;  // whether the program writes over them
  };

  template <class Graph>
  static constexpr finding check(const Graph&) {
    return {};
  }
  template <class State, class Graph>
  static constexpr void start(State& st, const Graph& g) {
    st.memory.inputs = writes_inputs(g);
  }

  template <class State, class Graph>
  static constexpr void advance(State& st, const Graph& g, stage_work work) {
    while (!st.done && work.take(60)) step(st, g, work);
  }

 private:
  // One node looked at.
  template <class State, class Graph>
  static constexpr void step(State& st, const Graph& g, stage_work& work) {
    auto& m = st.memory;
    const int n = g.node_count;
    switch (m.at) {
      case look_back:
        if (st.cursor < n) return look_at(st, g, st.cursor++);
        m.first_fed = m.first_fed_touch = m.comms;
        m.at = look_ahead;
        return;
      case look_ahead:
        if (st.cursor > 0) return look_behind(st, g, --st.cursor);
        work.take(20 * n);
        list_nodes(st, n);
        m.at = m.comms > 0 ? find_needed : run_rest;
        m.walk = end(m);
        if (m.comms > 0) need(m, m.comm[0], 0);
        return;
      case find_needed:
        if (m.depth > 0) return need_operands(st, g, m.stack[--m.depth], work);
        m.computed = m.rolled_over;
        m.rolled_over = 0;
        m.blocked = false;
        restart(m, run_needed);
        return;
      case run_needed: {  // what the collective needs beside the one before
        if (m.free == 0) return restart(m, m.current == 0 ? run_blocked : fill_gap);
        const int i = first_of(m.heap, 0, 1, m.free, work);
        m.computed += time_of(g, i, work);
        return put(st, i);
      }
      case fill_gap: {  // until the collective before is done: whatever is ready
        const int i = following(st, m.next_fed);
        const double gap = m.before - m.computed;
        if (i < 0 || gap <= 0 || m.looked++ == most_looked_at) return restart(m, run_blocked);
        m.walk = i;
        if (m.depends[i] >= m.current - 1 || is_comm(m, i) || !ready(st, g, i)) return;
        if (i > m.comm[m.current] && replay_of(g, i) >= 0) return;  // computed again late, so that little is kept meanwhile
        const double cost = time_of(g, i, work);
        if (gap <= cost / 2) return;
        m.computed += cost;
        put(st, i);
        return;
      }
      case run_blocked: {  // the rest of what it needs, and the collective
        const int c = m.comm[m.current];
        if (m.blocked_nodes > 0) {
          m.blocked = true;
          return put(st, first_of(m.heap, end(m) - 1, -1, m.blocked_nodes, work));
        }
        each_member(g, c, [&](int j) { put(st, j); });
        if (m.current > 0 && !m.blocked) {
          const double more = m.computed - m.before;
          m.rolled_over = more > 0 ? more : 0;
        }
        m.before = 0;
        each_member(g, c, [&](int j) { m.before += time_of(g, j, work); });
        if (++m.current == m.comms) return restart(m, run_rest);
        m.at = find_needed;
        need(m, m.comm[m.current], m.current);
        return;
      }
      default: {
        const int i = following(st, m.next);
        if (i >= 0) return put(st, i);
        st.done = true;
      }
    }
  }

  template <class Graph>
  static constexpr double time_of(const Graph& g, int i, stage_work& work) {
    work.take(300);
    return Model::microseconds(g, i);
  }
  template <class Memory>
  static constexpr int end(const Memory&) {
    return Memory::n;
  }
  template <class Memory>
  static constexpr void restart(Memory& m, phase p) {
    m.at = p;
    m.walk = end(m);
    m.looked = 0;
  }
  // The node to come behind `walk` in a list, -1 at its end; those that have come are taken out.
  template <class State>
  static constexpr int following(State& st, int* next) {
    int& i = next[st.memory.walk];
    while (i >= 0 && st.emitted[i]) i = next[i];
    return i;
  }
  template <class State>
  static constexpr void put(State& st, int i) {
    st.emit(i);
    auto& m = st.memory;
    while (m.touches_done < m.touches && st.emitted[m.touch[m.touches_done]]) ++m.touches_done;
    while (m.updates_done < m.updates && st.emitted[m.update[m.updates_done]]) ++m.updates_done;
  }

  template <class Memory>
  static constexpr bool is_comm(const Memory& m, int i) {
    return m.depends[i] >= 0 && m.comm[m.depends[i]] == i;
  }
  template <class Graph, class Memory>
  static constexpr bool touches_storage(const Graph& g, const Memory& m, int i) {
    const node& x = g.nodes[i];
    bool any = false;
    for (int k = 0; k < x.inputs; ++k) any = any || m.changes[x.in[k]];
    return any;
  }

  template <class State, class Graph>
  static constexpr void look_at(State& st, const Graph& g, int i) {
    auto& m = st.memory;
    const node& x = g.nodes[i];
    int last = -1;
    for (int k = 0; k < x.inputs; ++k) last = m.depends[x.in[k]] > last ? m.depends[x.in[k]] : last;
    const bool updates = is_update(x.op);
    m.changes[i] = (is_leaf(x.op) && (m.inputs || x.op != op_code::input)) || shares_marked(g, i, m.changes);
    if (updates) {
      m.behind[i] = m.touches;
      m.update[m.updates++] = i;
      last = m.deepest > last ? m.deepest : last;
      m.deepest_update = last > m.deepest_update ? last : m.deepest_update;
    } else if (touches_storage(g, m, i)) {
      m.behind[i] = m.updates;
      m.touch[m.touches++] = i;
      last = m.deepest_update > last ? m.deepest_update : last;
      m.deepest = last > m.deepest ? last : m.deepest;
    }
    if (is_collective(g, i)) {
      if (!joins_batch(g, i)) m.comm[m.comms++] = i;
      last = m.comms - 1;
    }
    m.depends[i] = last;
    m.feeds[i] = -1;
  }

  // Backwards: feeds[] holds the number given by users so far, -1 for none.
  template <class State, class Graph>
  static constexpr void look_behind(State& st, const Graph& g, int i) {
    auto& m = st.memory;
    const node& x = g.nodes[i];
    int first = m.feeds[i] < 0 ? m.comms : m.feeds[i];
    const bool updates = is_update(x.op);
    const bool touches = !updates && touches_storage(g, m, i);
    if (updates) first = m.first_fed_touch < first ? m.first_fed_touch : first;
    if (touches) first = m.first_fed < first ? m.first_fed : first;
    if (is_comm(m, i) || joins_batch(g, i)) first = m.depends[i];
    if (updates && first < m.first_fed) m.first_fed = first;
    if (touches && first < m.first_fed_touch) m.first_fed_touch = first;
    m.feeds[i] = first;
    for (int k = 0; k < x.inputs; ++k)
      if (int& f = m.feeds[x.in[k]]; f < 0 || first < f) f = first;
  }

  template <class State>
  static constexpr void list_nodes(State& st, int n) {
    auto& m = st.memory;
    const int first = end(m);
    int* const bucket = m.stack;  // the first node that feeds each collective; not in use yet
    for (int c = 0; c <= m.comms && c < first; ++c) bucket[c] = -1;
    m.next[first] = -1;
    for (int i = n - 1; i >= 0; --i) {
      m.next[i] = m.next[first];
      m.next[first] = i;
      const int f = m.feeds[i] < first ? m.feeds[i] : first - 1;
      m.next_fed[i] = bucket[f];
      bucket[f] = i;
    }
    int last = first;
    m.next_fed[first] = -1;
    for (int c = 0; c <= m.comms && c < first; ++c) {
      if (bucket[c] < 0) continue;
      m.next_fed[last] = bucket[c];
      last = bucket[c];
      while (m.next_fed[last] >= 0) last = m.next_fed[last];
    }
  }

  // A heap of `count` nodes: entry k lies at heap[from + by * k], none before that half as far.
  static constexpr void add_to(int* heap, int from, int by, int& count, int i, stage_work& work) {
    int at = count++;
    for (; at > 0; at = (at - 1) / 2) {
      const int above = heap[from + by * ((at - 1) / 2)];
      if (above < i) break;
      heap[from + by * at] = above;
      work.take(8);
    }
    heap[from + by * at] = i;
  }
  static constexpr int first_of(int* heap, int from, int by, int& count, stage_work& work) {
    const int first = heap[from], i = heap[from + by * --count];
    int at = 0;
    for (int below = 1; below < count; below = 2 * at + 1) {
      if (below + 1 < count && heap[from + by * (below + 1)] < heap[from + by * below]) ++below;
      if (heap[from + by * below] > i) break;
      heap[from + by * at] = heap[from + by * below];
      at = below;
      work.take(12);
    }
    heap[from + by * at] = i;
    return first;
  }

  template <class Memory>
  static constexpr void need(Memory& m, int i, int c) {
    m.needed[i] = c + 1;
    m.stack[m.depth++] = i;
  }
  template <class State, class Graph>
  static constexpr void need_operands(State& st, const Graph& g, int i, stage_work& work) {
    auto& m = st.memory;
    if (is_comm(m, i) && i + 1 < g.node_count && joins_batch(g, i + 1)) {
      each_member(g, i, [&](int j) { need_operands_of(st, g, j, work); });
      return;
    }
    need_operands_of(st, g, i, work);
  }
  template <class State, class Graph>
  static constexpr void need_operands_of(State& st, const Graph& g, int i, stage_work& work) {
    auto& m = st.memory;
    const node& x = g.nodes[i];
    const auto add = [&](int d) {
      if (st.emitted[d] || m.needed[d] == m.current + 1) return;
      if (m.depends[d] < m.current - 1) add_to(m.heap, 0, 1, m.free, d, work);
      else add_to(m.heap, end(m) - 1, -1, m.blocked_nodes, d, work);
      need(m, d, m.current);
    };
    for (int k = 0; k < x.inputs; ++k) add(x.in[k]);
    const int behind = m.behind[i] - (is_update(x.op) ? m.touches_done : m.updates_done);
    if (behind > 0) work.take(8 * behind);
    if (is_update(x.op))
      for (int t = m.touches_done; t < m.behind[i]; ++t) add(m.touch[t]);
    else
      for (int u = m.updates_done; u < m.behind[i]; ++u) add(m.update[u]);
  }
  template <class State, class Graph>
  static constexpr bool ready(const State& st, const Graph& g, int i) {
    const auto& m = st.memory;
    const node& x = g.nodes[i];
    for (int k = 0; k < x.inputs; ++k)
      if (!st.emitted[x.in[k]]) return false;
    return (is_update(x.op) ? m.touches_done : m.updates_done) >= m.behind[i];
  }
};

}  // namespace passes

// Between two collectives: what the second needs without the first, then other kernels until the first is done, by the
// model's estimate, then what needs both. Followed by sink_waits and raise_comms, as PyTorch's compiler does it; the law
// and the price are theirs.
template <class Model = run_time<>>
struct reorder_compute_for_overlap : passes::reordering<passes::overlap_rules<Model>> {
  using moves_collectives = void;
  using verified_with_next = void;
  using preserves = passes_list<kept::collectives, kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1

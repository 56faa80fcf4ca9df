// SPDX-License-Identifier: Apache-2.0
// holding: a rewriting that holds nodes back, and knows which others must not overtake them; grouping: one that first says which
// nodes are written together.
#pragma once

#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1::passes {

// Nodes in `waiting` are written later than they stood. What reads or writes the storage that they write, or writes what
// they read, must come behind them.
template <class In, class Out>
struct holding_state : rewrite_state<In, Out> {
  using base = rewrite_state<In, Out>;
  using base::capacity;

  storage_map<capacity> storage;
  slot_table<Out::spec_capacity> slots;
  std::int64_t within[capacity]{};  // scratch of packs
  int list[capacity]{};
  int waiting[capacity]{};
  int waits = 0;
  int held_reads[capacity]{}, held_writes[capacity]{};  // by owner: nodes among `waiting`

  constexpr void begin(const In& g) {
    base::begin(g);
    slots.clear();
  }

  // Calls f(owner, writes) for the storage that node i reads and writes. A value that a list places writes its own slot, and who reads
  // the list reads the value: so values of one list stand in nobody's way.
  template <class F>
  constexpr void each_access(const In& g, int i, F&& f) const {
    const node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) f(storage.owner[n.in[k]], writes_operand(n, k));
    const int own = storage.owner[i];
    if (own == i || !has_storage(g, i)) return;
    if (g.nodes[own].op != op_code::pack || places_leaves(g.nodes[own])) f(own, true);
  }
  constexpr void hold(const In& g, int i, int by) {
    each_access(g, i, [&](int owner, bool writes) { (writes ? held_writes : held_reads)[owner] += by; });
  }
  constexpr bool conflicts(const In& g, int i) const {
    bool any = false;
    if (waits > 0)
      each_access(
          g, i, [&](int owner, bool writes) { any = any || held_writes[owner] != 0 || (writes && held_reads[owner] != 0); });
    return any;
  }
};

// Two walks over the graph: group(g, i) puts nodes into groups, place(b, g, i) writes them. Groups have numbers, and law: what a
// group depends on, by way of values or of what updates write, are groups of lower numbers.
template <class In, class Out>
struct grouping_state : holding_state<In, Out> {
  using base = holding_state<In, Out>;
  using base::capacity;

  int depends[capacity]{};                                // on groups below this number
  int read_after[capacity]{}, written_after[capacity]{};  // by owner: groups that its readers and writers depend on

  static constexpr void raise(int& to, int by) {
    if (to < by) to = by;
  }
  // What node i depends on: at least `d`, and what its operands and their storage do.
  constexpr int dependence(const In& g, int i, int d = 0) const {
    const node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) raise(d, depends[n.in[k]]);
    base::each_access(g, i, [&](int owner, bool writes) {
      raise(d, written_after[owner]);
      if (writes) raise(d, read_after[owner]);
    });
    return d;
  }
  constexpr void set_dependence(const In& g, int i, int d) {
    depends[i] = d;
    if (d > 0)
      base::each_access(g, i, [&](int owner, bool writes) { raise(writes ? written_after[owner] : read_after[owner], d); });
  }

  // A rewriting's step: of State, which derives from this and has group and place.
  template <class State>
  static constexpr bool walk_on(State& st, const In& g, builder& b) {
    const int n = g.node_count;
    if (st.cursor < n) {
      st.group(g, st.cursor);
    } else if (st.cursor < 2 * n) {
      st.place(b, g, st.cursor - n);
    } else {
      if (st.cursor == 2 * n) st.set_outputs(g);
      if (st.cursor == 2 * n) ++st.cursor;
      return false;
    }
    ++st.cursor;
    return true;
  }
};

}  // namespace shardwise::inline v0_1::passes

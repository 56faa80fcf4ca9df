// SPDX-License-Identifier: Apache-2.0
// holding: a rewriting that holds nodes back, and knows which others must not overtake them.
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

  // Calls f(owner, writes) for the storage that node i reads and writes.
  template <class F>
  constexpr void each_access(const In& g, int i, F&& f) const {
    const node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) f(storage.owner[n.in[k]], writes_operand(n, k));
    if (storage.owner[i] != i && has_storage(g, i)) f(storage.owner[i], true);
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

}  // namespace shardwise::inline v0_1::passes

// SPDX-License-Identifier: Apache-2.0
// merge_common, cancel_redistributions: the same bits with fewer nodes and fewer collectives.
#pragma once

#include <bit>

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/checkpoint.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/sweep.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

struct cancel_rules {
  template <int Nodes>
  struct memory {};

  template <class Graph>
  static constexpr bool any(const Graph& g) {
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != op_code::redistribute) continue;
      const node& m = g.nodes[n.in[0]];
      if (m.spec == n.spec || m.op == op_code::redistribute) return true;
    }
    return false;
  }

  // Whether from -> by -> to and from -> to give every rank the same bits. Moves of elements do; so does a change of name
  // between whole placements. A partial on the way does not: 0 + -0 is 0, and sums are taken in another order.
  static constexpr bool composes(const placement& from, const placement& by, const placement& to) {
    if (by.overlaps() || to.overlaps()) return false;  // halos are exchanged between owners
    if (by.is_whole() && (from.is_whole() || to.is_whole())) return true;
    return !from.is_partial() && !by.is_partial() && !to.is_partial();
  }

  template <class State>
  static constexpr void visit(State& st, int i) {
    node& n = st.g.nodes[i];
    if (n.op != op_code::redistribute) return;
    const int by = n.in[0];
    const node& m = st.g.nodes[by];
    if (m.spec == n.spec) {  // a view of itself
      if (!st.packed[i]) st.replace(i, by);
      return;
    }
    if (m.op != op_code::redistribute || batch_number(n) != 0) return;  // a batch stays whole
    const int axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
    if (attributes_of<redistribute_attributes>(m.a).axis != axis) return;
    const int from = m.in[0];
    const spec& x = st.g.specs[st.g.nodes[from].spec];
    const spec& out = st.g.specs[n.spec];
    if (!composes(x.place[axis], st.g.specs[m.spec].place[axis], out.place[axis])) return;
    const outcome direct = rules::redistribute_spec(n.a, x);
    if (direct.error || !(direct.out == out)) return;
    const transition t = transition_of(x.place[axis], out.place[axis], x.axis_size[axis]);
    // while the middle is needed otherwise, going directly would be one more collective
    if (communicates(t) && st.uses[by] > 1) return;
    // the result would be the operand's own storage, or be read from it later than before: not if it is overwritten
    const bool alias = t == transition::none;
    if (st.packed[i] && alias) return;
    if (st.may_change(from) && (alias ? st.last_use[i] >= st.first_update : st.last_update > by)) return;
    if (st.g.nodes[from].spec == n.spec) return st.replace(i, from);
    st.release(by);
    ++st.uses[from];
    n.in[0] = from;
    if (alias) {
      st.root[i] = st.root[from];
      if (st.last_use[from] < st.last_use[i]) st.last_use[from] = st.last_use[i];
    }
  }
};

struct merge_rules {
  // Open addressing: node + 1 by what it computes.
  template <int Nodes>
  struct memory {
    static constexpr unsigned size = std::bit_ceil(2U * static_cast<unsigned>(Nodes > 0 ? Nodes : 1));
    int slot[size]{};
  };

  // Whether two nodes are equal before anything is merged, by a hash of less than `key` takes; true of a graph that is too large to
  // be looked at in one constant.
  template <class Graph>
  static constexpr bool any(const Graph& g) {
    memory<Graph::node_capacity> seen;
    constexpr unsigned size = memory<Graph::node_capacity>::size;
    const int count = g.node_count;
    if (count > 10 * stage_nodes) return true;
    for (int i = 0; i < count; ++i) {
      const node& n = g.nodes[i];
      if (!is_pure(n.op)) continue;
      unsigned h = static_cast<unsigned>(n.op) * 0x85ebca6bU + static_cast<unsigned>(n.a.v[0]) * 0x27d4eb2fU;
      for (int k = 0; k < n.inputs; ++k) h = (h + static_cast<unsigned>(n.in[k])) * 0x9e3779b1U;
      unsigned at = (h ^ h >> 15) & (size - 1);
      for (; seen.slot[at] != 0; at = (at + 1) & (size - 1))
        if (same(g.nodes[seen.slot[at] - 1], n)) return true;
      seen.slot[at] = i + 1;
    }
    return false;
  }

  // Random draws, updates and functions that nothing is known of are not merged; leaves are the caller's.
  static constexpr bool is_pure(op_code op) {
    return !is_leaf(op) && !is_update(op) && op != op_code::opaque && op != op_code::room && !rules::is_random(op);
  }
  static constexpr std::uint64_t key(const node& n) {
    std::uint64_t h = static_cast<std::uint64_t>(n.op) | static_cast<std::uint64_t>(n.spec) << 8;
    const auto mix = [&h](std::uint64_t v) { h = hash_mixed(h, v); };
    for (int k = 0; k < n.inputs; ++k) mix(static_cast<std::uint64_t>(n.in[k]));
    for (const std::int64_t v : n.a.v) mix(static_cast<std::uint64_t>(v));
    mix(std::bit_cast<std::uint64_t>(n.f));
    return h;
  }
  static constexpr bool same(const node& a, const node& b) {
    if (a.op != b.op || a.spec != b.spec || a.inputs != b.inputs || a.expression != b.expression || !(a.a == b.a))
      return false;
    for (int k = 0; k < a.inputs; ++k)
      if (a.in[k] != b.in[k]) return false;
    return std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);  // 0 and -0 differ
  }

  // Only nodes after the last update are merged with: before it, an operand may have had another value.
  template <class State>
  static constexpr void visit(State& st, int i) {
    const node& n = st.g.nodes[i];
    if (!is_pure(n.op)) return;
    int* const slot = st.memory.slot;
    const unsigned size = decltype(st.memory)::size;
    unsigned at = static_cast<unsigned>(key(n)) & (size - 1), spare = size;
    for (; slot[at] != 0; at = (at + 1) & (size - 1)) {
      const int known = slot[at] - 1;
      if (known < st.last_update &&
          n.op != op_code::getitem) {  // a node's results are what they were, whatever is written since
        if (spare == size && st.g.nodes[known].op != op_code::getitem) spare = at;
        continue;
      }
      if (!st.packed[i] && same(st.g.nodes[known], n) && may_stand_for(st.g, known, i)) return st.replace(i, known);
    }
    slot[spare == size ? at : spare] = i + 1;
  }
};

}  // namespace passes

// Chains of redistributions along one axis become one, or none where they lead back: replicate -> shard -> replicate. A
// collective goes wherever the result is the same bits. The price: what was a shard in between may stay whole longer.
struct cancel_redistributions : passes::sweep<passes::cancel_rules> {
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

// Equal operations on equal operands are computed once; what a checkpoint computes again stays apart from what it repeats.
struct merge_common : passes::sweep<passes::merge_rules> {
  using apply_after = passes_list<cancel_redistributions>;  // which leaves more to merge
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1

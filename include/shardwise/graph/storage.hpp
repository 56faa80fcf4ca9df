// SPDX-License-Identifier: Apache-2.0
// Where values lie: packs, whose operands are computed side by side in one buffer, and the storage that each value shares.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// A pack is a list of tensors as one flat tensor. Nothing is copied: the memory plan lays its operands out in its own
// storage, one after another, each beginning at a multiple of slot_alignment bytes; so one collective or one update can
// run over all of them. A list of more than max_packed tensors is a chain of packs, each going on where its first operand
// ends. Operands are leaves (then a pack is where the caller's tensors lie, and updates may write through it) or values
// with storage of their own, what a kernel stores besides its result and each of several results included, or waits for such values;
// each belongs to one pack at most. unpack is the way back: a view of one slot.
//
// Slots are as large as on the ranks at coordinate 0, so they are at the same place on all ranks and in all packs of
// tensors with the same extents; what an uneven shard leaves of its slot, and what alignment does, nobody reads.
inline constexpr std::int64_t slot_alignment = 64;
inline constexpr int max_packed = 5;  // operands of one pack

// A pack of leaves. Where they lie belongs to the caller as well: programs that share them place them alike.
// Of a pack: whether operand 0 is one, where whose last slot ends it goes on.
constexpr bool goes_on(const node& n) { return attributes_of<storage_attributes>(n.a).goes_on != 0; }
constexpr bool places_leaves(const node& n) {
  return n.op == op_code::pack && attributes_of<storage_attributes>(n.a).leaves != 0;
}

constexpr std::int64_t slot_bytes(const spec& s) {
  const std::int64_t bytes = largest_numel(s) * static_cast<std::int64_t>(size_of(s.type));
  return (bytes + slot_alignment - 1) & -slot_alignment;
}

// The flat tensor of `elements` elements a rank: partial where its operands are, shards on the axes of the mask `split`.
constexpr spec flat_spec(const spec& like, std::int64_t elements, unsigned split) {
  spec s = scalar_like(like);
  s.rank = 1;
  s.extent[0] = elements;
  for (int a = 0; a < s.axes; ++a) {
    s.place[a] = like.place[a].is_shard() ? replicate_value() : like.place[a];
    if (((split >> a) & 1U) == 0 || s.place[a].is_partial()) continue;
    s.place[a] = shard_value(0);
    s.extent[0] *= s.axis_size[a];
  }
  make_contiguous(s);
  return s;
}
constexpr unsigned split_axes(const spec& s) {
  unsigned split = 0;
  for (int a = 0; a < s.axes; ++a) split |= s.place[a].is_shard() ? 1U << a : 0U;
  return split;
}

// Slots by spec: few specs serve all tensors.
template <int Specs>
struct slot_table {
  std::int64_t bytes[Specs > 0 ? Specs : 1];
  unsigned split[Specs > 0 ? Specs : 1];  // axes, where bytes are known

  constexpr void clear() {
    for (std::int64_t& b : bytes) b = -1;
    for (unsigned& s : split) s = 0;
  }
  constexpr std::int64_t of(const builder& b, int id) {
    std::int64_t& known = bytes[b.nodes[id].spec];
    if (known < 0) {
      known = slot_bytes(b.specs[b.nodes[id].spec]);
      split[b.nodes[id].spec] = split_axes(b.specs[b.nodes[id].spec]);
    }
    return known;
  }
};

// Appends the pack of ids[0], ids[1], ...; returns its last link. `within[k]`: byte at which operand k begins.
template <class Slots>
constexpr int emit_pack(builder& b, Slots& slots, const int* ids, int count, bool leaves, int scope, std::int64_t* within) {
  std::int64_t total = 0;
  unsigned split = 0;
  for (int k = 0; k < count; ++k) {
    within[k] = total;
    total += slots.of(b, ids[k]);
    split |= slots.split[b.nodes[ids[k]].spec];
  }
  const spec& like = b.specs[b.nodes[ids[0]].spec];
  const std::int64_t size = static_cast<std::int64_t>(size_of(like.type));
  const int flat = b.intern(flat_spec(like, total / size, split));
  int last = -1;
  for (int k = 0; k < count;) {
    node n = empty_node;
    n.op = op_code::pack;
    n.spec = flat;
    n.scope = scope;
    n.a = attributes<storage_attributes>(within[k] / size, last >= 0, leaves);
    if (last >= 0) n.in[n.inputs++] = last;
    while (n.inputs < max_packed && k < count) n.in[n.inputs++] = ids[k++];
    last = b.append(n);
  }
  return last;
}

// Calls f(operand, element of the flat tensor at which it begins) for every tensor of the list that ends with pack `id`,
// the last link first.
template <class Graph, class F>
constexpr void each_packed(const Graph& g, int id, F&& f) {
  for (;;) {
    const node& n = g.nodes[id];
    const std::int64_t size = static_cast<std::int64_t>(size_of(g.specs[n.spec].type));
    const auto of = attributes_of<storage_attributes>(n.a);
    std::int64_t at = of.at;
    for (int k = of.goes_on != 0 ? 1 : 0; k < n.inputs; ++k) {
      f(n.in[k], at);
      at += slot_bytes(g.specs[g.nodes[n.in[k]].spec]) / size;
    }
    if (of.goes_on == 0) return;
    id = n.in[0];
  }
}

// The tensors of a list in order, at most N of them.
template <int N>
struct packed_list {
  int id[N > 0 ? N : 1]{};
  int count = 0;

  constexpr const int* begin() const { return id; }
  constexpr const int* end() const { return id + count; }
};
template <class Graph>
constexpr auto packed_tensors(const Graph& g, int pack) {
  packed_list<Graph::node_capacity> r;
  int link = pack;
  for (; goes_on(g.nodes[link]); link = g.nodes[link].in[0]) r.count += g.nodes[link].inputs - 1;
  r.count += g.nodes[link].inputs;
  int at = r.count;
  for (link = pack;; link = g.nodes[link].in[0]) {
    const node& n = g.nodes[link];
    const int first = goes_on(n) ? 1 : 0;
    for (int k = n.inputs - 1; k >= first; --k) r.id[--at] = n.in[k];
    if (first == 0) return r;
  }
}

// Whether a node writes into its operand k.
constexpr bool writes_operand(const node& n, int k) { return writes_operand(n.op, n.a, k); }

// Whether a program writes over its inputs; parameters and states it may always.
template <class Graph>
constexpr bool writes_inputs(const Graph& g) {
  for (int i = 0; i < g.node_count; ++i) {
    if (!is_update(g.nodes[i].op)) continue;
    int o = g.nodes[i].in[0];
    while (g.nodes[o].inputs > 0 &&
           (is_update(g.nodes[o].op) || is_view(g.nodes[o], g.spec_of(g.nodes[o].in[0]), g.spec_of(o))))
      o = g.nodes[o].in[0];
    if (g.nodes[o].op == op_code::input) return true;
  }
  return false;
}

// What a pack places where operand `i` is given: a wait's is what it waits for.
template <class Graph>
constexpr int computed_by(const Graph& g, int i) {
  return g.nodes[i].op == op_code::wait ? g.nodes[i].in[0] : i;
}

// owner[i]: the node whose storage value i lies in, itself if it has its own; within[i]: the byte of it at which i's own
// storage would begin (views add what they skip).
template <int Nodes>
struct storage_map {
  int owner[Nodes > 0 ? Nodes : 1];
  std::int64_t within[Nodes > 0 ? Nodes : 1];
};

template <class Graph>
constexpr void find_storage(const Graph& g, storage_map<Graph::node_capacity>& m) {
  slot_table<Graph::spec_capacity> slots;
  slots.clear();
  bool placed = false;  // whether a value lies where a later node says
  const int count = g.node_count;
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  for (int i = count; i < capacity; ++i) {
    m.owner[i] = i;
    m.within[i] = 0;
  }
  for (int i = 0; i < count; ++i) {
    const node& n = g.nodes[i];
    m.owner[i] = i;
    m.within[i] = 0;
    if (n.inputs == 0) continue;
    if (n.op == op_code::pack) {
      placed = true;
      const bool goes_on = shardwise::goes_on(n);
      const int root = goes_on ? m.owner[n.in[0]] : i;
      m.owner[i] = root;
      std::int64_t at = attributes_of<storage_attributes>(n.a).at * static_cast<std::int64_t>(size_of(g.specs[n.spec].type));
      for (int k = goes_on ? 1 : 0; k < n.inputs; ++k) {
        const int s = g.nodes[n.in[k]].spec;
        const int placed_one = computed_by(g, n.in[k]);
        m.owner[placed_one] = root;
        m.within[placed_one] = at;
        if (g.nodes[placed_one].op == op_code::part) {  // the room that it is the value of
          m.owner[g.nodes[placed_one].in[0]] = root;
          m.within[g.nodes[placed_one].in[0]] = at;
        }
        if (slots.bytes[s] < 0) slots.bytes[s] = slot_bytes(g.specs[s]);
        at += slots.bytes[s];
      }
    } else if (is_update(n.op)) {
      m.owner[i] = m.owner[n.in[0]];
      m.within[i] = m.within[n.in[0]];
      if (n.op == op_code::in_place) {
        placed = true;
        const int root = m.owner[n.in[1]];  // of a pack of values: where its first link lies
        m.owner[root] = n.in[0];
        m.within[root] = 0;
      }
    } else if (may_view(n.op) && is_view(n, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec])) {
      m.owner[i] = m.owner[n.in[0]];
      m.within[i] = m.within[n.in[0]];
    }
  }
  if (!placed) return;
  for (int i = 0; i < count; ++i)
    for (int o = m.owner[i]; m.owner[o] != o; o = m.owner[i]) {
      m.within[i] += m.within[o];
      m.owner[i] = m.owner[o];
    }
}

}  // namespace shardwise::inline v0_1

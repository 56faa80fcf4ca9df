// SPDX-License-Identifier: Apache-2.0
// siblings: matrix products that may become one: those that share an operand, and those whose results are added up.
#pragma once

#include <bit>

#include <shardwise/graph/checkpoint.hpp>
#include <shardwise/pass/fuse/regions.hpp>
#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1::passes {

inline constexpr int max_siblings = 16;
inline constexpr int added_up = 2;  // the side of products that are summed; 0, 1: of those that share that operand

// Candidates, in program order: siblings are equal but for their operands, and none is an operand of another's.
template <int Nodes>
struct sibling_table {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  int uses[capacity];           // by nodes and outputs
  int first_user[capacity];     // -1: none
  int open[2][capacity];        // of an operand: the product that last joined, as lhs and as rhs, those that share it
  int group[capacity];          // of a product or of a sum of some: the group's first member, -1: none
  int next[capacity];           // of a member: another one, -1: no more
  int tree[capacity];           // of a first member: the last sum above; of that: the one before
  int row_sum[capacity];        // of a value: its sum over all dims but the last, -1: none
  int epoch[capacity];          // updates before the node
  int first[capacity / 2 + 1];  // first members of the groups
  signed char side[capacity];
  int groups;
  int updates, last_update;
  int cursor;

  template <class Graph>
  constexpr void begin(const Graph& g) {
    groups = updates = cursor = 0;
    last_update = -1;
    for (int i = 0; i < capacity; ++i) {
      uses[i] = epoch[i] = 0;
      first_user[i] = open[0][i] = open[1][i] = group[i] = next[i] = tree[i] = row_sum[i] = -1;
      side[i] = -1;
    }
    for (int& f : first) f = -1;
    const int n = g.node_count;
    for (int i = n - 1; i >= 0; --i) {
      const node& x = g.nodes[i];
      for (int k = 0; k < x.inputs; ++k) {
        ++uses[x.in[k]];
        first_user[x.in[k]] = i;
      }
    }
    for (int k = 0; k < g.output_count; ++k) ++uses[g.outputs[k]];
  }

  constexpr int size_of_group(int leader) const {
    int n = 1;
    for (int m = next[leader]; m >= 0; m = next[m]) ++n;
    return n;
  }
  constexpr bool is_alone(int leader) const { return group[leader] < 0; }
  constexpr void join(int leader, int i, int s) {
    if (is_alone(leader)) {
      group[leader] = leader;
      side[leader] = static_cast<signed char>(s);
      first[groups++] = leader;
    }
    group[i] = leader;
    next[i] = next[leader];
    next[leader] = i;
  }
};

// Whether node i casts a parameter: it may stand wherever no update has come between.
template <class Graph>
constexpr bool casts_leaf(const Graph& g, int i) {
  return g.nodes[i].op == op_code::cast && g.nodes[g.nodes[i].in[0]].op == op_code::param;
}
// Whether node i casts a value for later readers, as gradients are for the update: it may wait for the value.
template <class Graph>
constexpr bool casts_value(const Graph& g, int i) {
  return g.nodes[i].op == op_code::cast && !casts_leaf(g, i);
}
// The first node that must stand behind value i, -1: none; a cast that alone reads it waits.
template <class Graph, class Table>
constexpr int first_reader(const Graph& g, const Table& t, int i) {
  const int u = t.first_user[i];
  return u >= 0 && t.uses[i] == 1 && casts_value(g, u) ? t.first_user[u] : u;
}

template <class Graph>
constexpr bool is_product(const Graph& g, int i) {
  const node& n = g.nodes[i];
  return n.op == op_code::einsum && n.expression < 0 && attributes_of<einsum_attributes>(n.a).keeps_sums == 0 &&
         n.in[0] != n.in[1];
}

// Equal but for their operands; both operands have equal specs.
template <class Graph>
constexpr bool are_alike(const Graph& g, int i, int j) {
  const node &a = g.nodes[i], &b = g.nodes[j];
  return a.spec == b.spec && a.a == b.a && std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f) &&
         g.nodes[a.in[0]].spec == g.nodes[b.in[0]].spec && g.nodes[a.in[1]].spec == g.nodes[b.in[1]].spec;
}

template <class Graph, class Table>
constexpr void visit_product(const Graph& g, Table& t, int i) {
  for (int s = 0; s < 2; ++s) {
    int& open = t.open[s][g.nodes[i].in[s]];
    const int leader = open;
    const bool joins = leader > t.last_update && t.group[i] < 0 &&
                       (t.is_alone(leader) || (t.group[leader] == leader && t.side[leader] == s)) &&
                       are_alike(g, leader, i) && g.nodes[leader].in[1 - s] != g.nodes[i].in[1 - s] &&
                       t.size_of_group(leader) < max_siblings && may_stand_for(g, leader, i);
    if (joins) t.join(leader, i, s);
    else open = i;
  }
}

// The first of the products that a sum's operand is made of, if nothing else reads it.
template <class Graph, class Table>
constexpr int term_of(const Graph& g, const Table& t, int i) {
  if (t.uses[i] != 1) return -1;
  int leader = -1;
  if (is_product(g, i)) leader = t.is_alone(i) ? i : t.group[i];
  else if (g.nodes[i].op == op_code::add) leader = t.group[i];
  if (leader <= t.last_update) return -1;
  return t.is_alone(leader) || t.side[leader] == added_up ? leader : -1;
}

template <class Graph, class Table>
constexpr void visit_sum(const Graph& g, Table& t, int i) {
  const node& n = g.nodes[i];
  if (n.inputs != 2 || n.expression >= 0 || g.nodes[n.in[0]].spec != n.spec || g.nodes[n.in[1]].spec != n.spec) return;
  int leader = term_of(g, t, n.in[0]), other = term_of(g, t, n.in[1]);
  if (leader >= 0 && other >= 0) {
    if (t.is_alone(leader) && !t.is_alone(other)) {
      const int x = leader;
      leader = other;
      other = x;
    }
    // what one piece of the batch is computed from is not kept for another
    if (leader == other || !t.is_alone(other) || !are_alike(g, leader, other) || t.size_of_group(leader) == max_siblings ||
        turn_of(g, leader) != turn_of(g, other))
      return;
    t.join(leader, other, added_up);
    while (t.tree[other] >= 0) {  // sums above the one that was alone
      const int above = t.tree[other];
      t.tree[other] = t.tree[above];
      t.tree[above] = t.tree[leader];
      t.tree[leader] = above;
      t.group[above] = leader;
    }
  } else if (leader < 0) {
    leader = other;
  }
  if (leader < 0) return;
  t.group[i] = leader;
  t.tree[i] = t.tree[leader];
  t.tree[leader] = i;
}

template <class Graph, class Table>
constexpr bool find_siblings(const Graph& g, Table& t, stage_work work) {
  while (t.cursor < g.node_count && work.take(40)) {
    const int i = t.cursor++;
    const op_code op = g.nodes[i].op;
    t.epoch[i] = t.updates;
    if (op == op_code::einsum) {
      work.take(40 + 4 * max_siblings);
      if (is_product(g, i)) visit_product(g, t, i);
    } else if (op == op_code::add) {
      work.take(40 + 4 * max_siblings);
      visit_sum(g, t, i);
    } else if (op == op_code::sum) {
      if (sums_rows(g, i) && g.nodes[i].expression < 0) t.row_sum[g.nodes[i].in[0]] = i;
    } else if (is_update(op)) {
      t.last_update = i;
      ++t.updates;
    }
  }
  return t.cursor < g.node_count;
}

// --- stacks ---------------------------------------------------------------------------------------------------------

// The spec of `count` equal blocks one after another: one dim more, before all others.
constexpr spec stacked(const spec& x, int count) {
  spec s = x;
  s.rank = static_cast<std::uint8_t>(x.rank + 1);
  for (int d = x.rank; d > 0; --d) {
    s.extent[d] = x.extent[d - 1];
    s.stride[d] = x.stride[d - 1];
  }
  s.extent[0] = count;
  s.dyn = x.dyn << max_dyn_sizes;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard()) s.place[a].dim = static_cast<decltype(s.place[a].dim)>(s.place[a].dim + 1);
  return s;
}
constexpr spec dense_stack(const spec& x, int count) {
  spec s = stacked(x, count);
  s.offset = 0;
  make_contiguous(s);
  return s;
}

// The value whose own storage is all of node i's, seen with other extents or by another name.
template <class Graph>
constexpr int base_of_value(const Graph& g, int i) {
  for (;;) {
    const node& n = g.nodes[i];
    const bool seen = n.op == op_code::reshape || n.op == op_code::redistribute;
    if (!seen || !is_contiguous(g.specs[n.spec]) || !is_view(n, g.spec_of(n.in[0]), g.specs[n.spec])) return i;
    i = n.in[0];
  }
}

// Slots of tensors like this leave no gap on any rank: all shards are of one size, which is one of slots.
constexpr bool stacks_densely(const spec& s) {
  constexpr int origin[max_axes]{};
  std::int64_t elements = 1;
  for (int d = 0; d < s.rank; ++d) {
    const std::int64_t n = local_interval(s, d, origin).size;
    std::int64_t all = n;
    for (int a = 0; a < s.axes; ++a)
      if (s.place[a].is_shard(d)) all *= s.axis_size[a];
    if (all != s.extent[d]) return false;
    elements *= n;
  }
  return s.dyn == 0 && elements > 0 && is_contiguous(s) &&
         elements * static_cast<std::int64_t>(size_of(s.type)) % slot_alignment == 0;
}

}  // namespace shardwise::inline v0_1::passes

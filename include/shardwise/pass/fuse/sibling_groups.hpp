// SPDX-License-Identifier: Apache-2.0
// sibling_groups: which siblings become one product, where it stands, and in which order their operands lie side by side.
#pragma once

#include <shardwise/pass/fuse/siblings.hpp>
#include <shardwise/pass/fuse/worth.hpp>

namespace shardwise::inline v0_1::passes {

inline constexpr int max_sibling_kinds = 32;

enum class sibling_role : unsigned char {
  none,
  placed,  // lies in a stack, or another pass has said where
  gone,    // its value is a part of the merged one
};

// The groups that are merged, by their first members. A stack is a pack whose slots follow each other without a gap, so
// that a view of all of it is a tensor; it is named by the base that lies first. What one stack holds lies in no other.
template <int Nodes>
struct merge_table {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  sibling_role role[capacity]{};
  int stacks[capacity]{};                   // of a base: the one that lies first, plus one; 0: in none
  int nexts[capacity]{};                    // of a base: the one behind it, plus one
  int written[capacity]{};                  // of a node: the group that is written in its place, plus one
  bool bias[capacity]{}, rows[capacity]{};  // of a first member: its values are sums with biases; its others are summed too
  int kind_of[max_sibling_kinds][3]{};
  int kinds = 0;
  int nodes = 0, specs = 0;  // more than before, at most
  int cursor = 0;

  constexpr int stack(int b) const { return stacks[b] - 1; }
  constexpr int after(int b) const { return nexts[b] - 1; }
  constexpr int group_at(int i) const { return written[i] - 1; }

  template <class Graph>
  constexpr void begin(const Graph& g) {
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.op == op_code::pack)
        for (int k = 0; k < n.inputs; ++k) role[n.in[k]] = sibling_role::placed;
      if (n.op == op_code::in_place) role[n.in[1]] = sibling_role::placed;
    }
  }
};

// The members of a group in program order, and nodes that belong to each of them.
struct sibling_list {
  int id[max_siblings]{};
  int count = 0;
};
template <class Table>
constexpr sibling_list members_of(const Table& t, int leader) {
  sibling_list m;
  for (int i = leader; i >= 0; i = t.next[i]) {
    int k = m.count++;
    for (; k > 0 && m.id[k - 1] > i; --k) m.id[k] = m.id[k - 1];
    m.id[k] = i;
  }
  return m;
}
template <class F>
constexpr sibling_list each_of(const sibling_list& m, F&& f) {
  sibling_list r;
  for (; r.count < m.count; ++r.count) r.id[r.count] = f(m.id[r.count]);
  return r;
}
template <class Graph>
constexpr sibling_list operands_of(const Graph& g, const sibling_list& m, int k) {
  return each_of(m, [&g, k](int i) { return g.nodes[i].in[k]; });
}
template <class Graph>
constexpr sibling_list bases_of(const Graph& g, const sibling_list& values) {
  return each_of(values, [&g](int i) { return base_of_value(g, i); });
}

// What lies side by side: parameters, casts of parameters, or other values. Casts of parameters that lie side by side are one cast of
// all of them: it reads and writes what they do, in one kernel, and their slots need no gap.
enum class base_kind : unsigned char { leaf, cast, value };
template <class Graph>
constexpr base_kind kind_of_base(const Graph& g, int b) {
  if (g.nodes[b].op == op_code::param) return base_kind::leaf;
  return casts_leaf(g, b) ? base_kind::cast : base_kind::value;
}
// Whether base b of a group's operand, or that cast anew, can be written before node e of the group, which no update parts.
template <class Graph>
constexpr bool is_ready(const Graph& g, int b, int e) {
  return b < e || (casts_leaf(g, b) && g.nodes[b].in[0] < e);
}
// Whether the casts x and y of parameters may be one, and value v lies as cast x does.
template <class Graph, class Table>
constexpr bool cast_alike(const Graph& g, const Table& t, int x, int y, int v) {
  const node &a = g.nodes[x], &b = g.nodes[y];
  bool same =
      a.a == b.a && g.nodes[a.in[0]].spec == g.nodes[b.in[0]].spec && t.epoch[x] == t.epoch[y] && b.in[0] < x && a.in[0] < y;
  for (int i = 0; same && i < g.spec_of(x).axes; ++i) same = g.spec_of(x).place[i] == g.spec_of(v).place[i];
  return same;
}

// The sum of product i with a bias, which alone reads it: a parameter, its cast, or what a group's parameters are gathered to; -1:
// none.
template <class Graph, class Table>
constexpr int bias_sum(const Graph& g, const Table& t, int i) {
  const int a = t.first_user[i];
  if (a < 0 || t.uses[i] != 1) return -1;
  const node& n = g.nodes[a];
  if (n.op != op_code::add || n.expression >= 0 || n.spec != g.nodes[i].spec || n.in[0] != i) return -1;
  const bool gathered =
      g.spec_of(n.in[1]).rank < g.specs[n.spec].rank && gathers_parameter(g.nodes[base_of_value(g, n.in[1])]);
  return gathered || kind_of_base(g, base_of_value(g, n.in[1])) != base_kind::value ? a : -1;
}

// The last of the pointwise operations that would follow value v in one kernel, -1: none.
template <class Graph, class Table>
constexpr int end_of_chain(const Graph& g, const Table& t, int v) {
  int end = -1;
  for (int k = 0; k < max_steps; ++k) {
    const int u = t.first_user[v];
    if (u < 0 || !is_step(g, u) || !same_extents(g.spec_of(u), g.spec_of(v))) return end;
    end = v = u;
  }
  return end;
}

// Whether these bases may lie side by side, or do so already: the first one of the stack in `lead` (-1: a new one).
template <class Graph, class Table, class Merges>
constexpr bool may_stack(const Graph& g, const Table& t, const Merges& m, const sibling_list& values,
                         const sibling_list& bases, int& lead) {
  lead = m.stack(bases.id[0]);
  const base_kind kind = kind_of_base(g, bases.id[0]);
  for (int k = 0; k < bases.count; ++k) {
    const int b = bases.id[k];
    if (g.nodes[b].spec != g.nodes[bases.id[0]].spec || g.nodes[values.id[k]].spec != g.nodes[values.id[0]].spec)
      return false;
    for (int j = 0; j < k; ++j)
      if (bases.id[j] == b) return false;
    if (lead >= 0 ? m.stack(b) != lead : m.role[b] != sibling_role::none) return false;
    if (kind_of_base(g, b) != kind || (kind == base_kind::value && !has_place(g, b))) return false;
    if (kind != base_kind::cast) continue;
    const int p = g.nodes[b].in[0];
    if (!cast_alike(g, t, b, bases.id[0], values.id[k]) || (lead < 0 && m.role[p] != sibling_role::none)) return false;
    for (int j = 0; j < k; ++j)
      if (g.nodes[bases.id[j]].in[0] == p || bases.id[j] < p || b < g.nodes[bases.id[j]].in[0]) return false;
  }
  if (lead >= 0) {
    int all = 0;
    for (int b = lead; b >= 0; b = m.after(b)) ++all;
    return all == bases.count;
  }
  if (kind == base_kind::cast) return stacks_densely(g.spec_of(g.nodes[bases.id[0]].in[0]));
  return stacks_densely(g.spec_of(bases.id[0])) && stacks_densely(g.spec_of(values.id[0]));
}
template <class Graph, class Merges>
constexpr void place_stack(const Graph& g, Merges& m, const sibling_list& bases) {
  for (int k = 0; k < bases.count; ++k) {
    if (casts_leaf(g, bases.id[k])) m.role[g.nodes[bases.id[k]].in[0]] = sibling_role::placed;
    m.role[bases.id[k]] = sibling_role::placed;
    m.stacks[bases.id[k]] = bases.id[0] + 1;
    m.nexts[bases.id[k]] = k + 1 < bases.count ? bases.id[k + 1] + 1 : 0;
  }
}
// The members' order in a stack that stands: the k-th of them comes order[k]-th.
template <class Merges>
constexpr void order_of_stack(const Merges& m, int lead, const sibling_list& bases, int* order) {
  for (int k = 0; k < bases.count; ++k) {
    order[k] = 0;
    for (int b = lead; b >= 0 && b != bases.id[k]; b = m.after(b)) ++order[k];
  }
}
constexpr sibling_list in_order(const sibling_list& x, const int* order) {
  sibling_list r;
  r.count = x.count;
  for (int k = 0; k < x.count; ++k) r.id[order[k]] = x.id[k];
  return r;
}

// Room for what a merged group adds, and the blocks of casts. The same kind of group adds the same specs.
template <class Graph, class Merges>
constexpr bool take_room(const Graph& g, Merges& m, const sibling_list& members, int side) {
  const node& n = g.nodes[members.id[0]];
  const bool casts = casts_leaf(g, base_of_value(g, n.in[0])) || casts_leaf(g, base_of_value(g, n.in[1]));
  const int key[3] = {side * 2 * max_siblings + members.count, g.nodes[n.in[0]].spec * 4096 + g.nodes[n.in[1]].spec, n.spec};
  int k = 0;
  while (k < m.kinds && !(m.kind_of[k][0] == key[0] && m.kind_of[k][1] == key[1] && m.kind_of[k][2] == key[2])) ++k;
  if (k == max_sibling_kinds) return false;
  if (k == m.kinds) {
    for (int j = 0; j < 3; ++j) m.kind_of[k][j] = key[j];
    ++m.kinds;
    m.specs += 10 + 2 * members.count + (casts ? 4 + 4 * members.count : 0);
  }
  m.nodes += 10 + 6 * members.count + (casts ? 4 + 4 * members.count : 0);
  return true;
}

template <class Graph, class Table>
constexpr int group_phase(const Graph& g, const Table& t, int leader) {
  const int side = t.side[leader];
  if (side == added_up) return 1;
  return kind_of_base(g, base_of_value(g, g.nodes[leader].in[1 - side])) != base_kind::value ? 0 : 2;
}

// Siblings that share an operand; in which phase they are settled says what they are.
template <class Worth, class Graph, class Table, class Merges>
constexpr void settle_shared(const Graph& g, const Table& t, Merges& m, int leader, merged_kind kind) {
  const sibling_list members = members_of(t, leader);
  const int side = t.side[leader];
  const sibling_list others = operands_of(g, members, 1 - side), bases = bases_of(g, others);
  int lead = -1, bias_lead = -1;
  if (g.specs[g.nodes[members.id[0]].spec].rank == max_rank || g.spec_of(g.nodes[members.id[0]].in[side]).rank == max_rank ||
      g.spec_of(others.id[0]).rank == max_rank || !may_stack(g, t, m, others, bases, lead))
    return;
  // sums with biases
  const sibling_list sums = each_of(members, [&](int i) { return bias_sum(g, t, i); });
  bool biased = true;
  for (int k = 0; k < sums.count && biased; ++k)
    biased = sums.id[k] >= 0 && t.epoch[sums.id[k]] == t.epoch[leader] && m.role[sums.id[k]] == sibling_role::none &&
             is_ready(g, base_of_value(g, g.nodes[sums.id[k]].in[1]), leader);
  sibling_list bias_values, bias_bases;
  if (biased) {
    bias_values = operands_of(g, sums, 1);
    bias_bases = bases_of(g, bias_values);
    int order[2][max_siblings]{};
    biased = may_stack(g, t, m, bias_values, bias_bases, bias_lead) && (lead >= 0) == (bias_lead >= 0);
    if (biased && lead >= 0) {
      order_of_stack(m, lead, bases, order[0]);
      order_of_stack(m, bias_lead, bias_bases, order[1]);
    }
    for (int k = 0; k < sums.count; ++k) biased = biased && order[0][k] == order[1][k];
  }
  const sibling_list& values = biased ? sums : members;
  // what follows a single product in its kernel would be a kernel of its own behind the merged one
  int chains = 0;
  sibling_list ends = each_of(values, [&](int i) { return end_of_chain(g, t, i); });
  for (int k = 0; k < ends.count; ++k) {
    bool known = ends.id[k] < 0;
    for (int j = 0; j < k; ++j) known = known || ends.id[j] == ends.id[k];
    chains += known ? 0 : 1;
  }
  if (1 + chains > members.count) return;
  const sibling_list rows = each_of(others, [&](int i) { return side == 1 ? t.row_sum[i] : -1; });
  bool summed = true;
  for (int k = 0; k < rows.count; ++k)
    summed = summed && rows.id[k] >= 0 && m.role[rows.id[k]] == sibling_role::none &&
             g.nodes[rows.id[k]].spec == g.nodes[rows.id[0]].spec;
  // at the first member, or at the last one: what it reads stands before, what reads it behind
  for (int k = 0; k < members.count; ++k)
    if (m.role[members.id[k]] != sibling_role::none) return;
  const auto stands_at = [&](int e) {
    for (int k = 0; k < members.count; ++k) {
      if (!is_ready(g, bases.id[k], e)) return false;
      const int reader = first_reader(g, t, members.id[k]);
      if (members.id[k] < e && !biased && reader >= 0 && reader <= e) return false;
      if (biased && sums.id[k] < e && t.first_user[sums.id[k]] >= 0 && t.first_user[sums.id[k]] <= e) return false;
    }
    return true;
  };
  int e = members.id[0];
  if (!stands_at(e)) e = members.id[members.count - 1];
  if (!stands_at(e)) return;
  for (int k = 0; k < rows.count && summed; ++k) {
    const int u = first_reader(g, t, rows.id[k]);
    summed = rows.id[k] >= e || u < 0 || u > e;
  }
  if (!Worth::merges(g, leader, members.count, kind, side) || !take_room(g, m, members, side)) return;
  if (lead < 0) place_stack(g, m, bases);
  if (biased && bias_lead < 0) place_stack(g, m, bias_bases);
  for (int k = 0; k < members.count; ++k) {
    m.role[members.id[k]] = sibling_role::gone;
    if (biased) m.role[sums.id[k]] = sibling_role::gone;
    if (summed) m.role[rows.id[k]] = sibling_role::gone;
  }
  m.bias[leader] = biased;
  m.rows[leader] = summed;
  m.written[e] = leader + 1;
}

// Siblings that are added up: their lhs lie side by side, and their rhs, in one order.
template <class Worth, class Graph, class Table, class Merges>
constexpr void settle_added(const Graph& g, const Table& t, Merges& m, int leader) {
  const sibling_list members = members_of(t, leader);
  sibling_list values[2], bases[2];
  int lead[2] = {-1, -1}, order[2][max_siblings]{};
  for (int s = 0; s < 2; ++s) {
    values[s] = operands_of(g, members, s);
    bases[s] = bases_of(g, values[s]);
    if (g.spec_of(values[s].id[0]).rank == max_rank || !may_stack(g, t, m, values[s], bases[s], lead[s])) return;
    if (lead[s] >= 0) order_of_stack(m, lead[s], bases[s], order[s]);
  }
  for (int k = 0; k < members.count; ++k) {
    if (m.role[members.id[k]] != sibling_role::none) return;
    if (lead[0] >= 0 && lead[1] >= 0 && order[0][k] != order[1][k]) return;
    for (int j = 0; j < members.count; ++j)
      if (bases[0].id[k] == bases[1].id[j]) return;
  }
  for (int a = t.tree[leader]; a >= 0; a = t.tree[a])
    if (m.role[a] != sibling_role::none) return;
  if (!Worth::merges(g, leader, members.count, merged_kind::added, 0) || !take_room(g, m, members, added_up)) return;
  for (int s = 0; s < 2; ++s)
    if (lead[s] < 0) place_stack(g, m, lead[1 - s] >= 0 ? in_order(bases[s], order[1 - s]) : bases[s]);
  for (int k = 0; k < members.count; ++k) m.role[members.id[k]] = sibling_role::gone;
  for (int a = t.tree[leader]; a >= 0; a = t.tree[a]) m.role[a] = sibling_role::gone;
  m.written[members.id[members.count - 1]] = leader + 1;
}

// First those of leaves, whose order others follow; then sums; then the rest. A group that is settled costs as much as
// settled_group visits to others.
inline constexpr int settled_group = 16;
template <class Worth = where_possible, class Graph, class Table, class Merges>
constexpr void settle_groups(const Graph& g, const Table& t, Merges& m, int steps) {
  while (steps > 0 && m.cursor < 3 * t.groups) {
    const int phase = m.cursor / t.groups, leader = t.first[m.cursor % t.groups];
    ++m.cursor;
    --steps;
    if (phase != group_phase(g, t, leader)) continue;
    steps -= settled_group;
    if (phase == 1) settle_added<Worth>(g, t, m, leader);
    else settle_shared<Worth>(g, t, m, leader, phase == 0 ? merged_kind::forward : merged_kind::weights);
  }
}

}  // namespace shardwise::inline v0_1::passes

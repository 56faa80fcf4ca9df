// SPDX-License-Identifier: Apache-2.0
// regions: which nodes of a graph become one kernel: pointwise chains, what they follow, and reductions that read alike.
#pragma once

#include <shardwise/graph/stage.hpp>
#include <shardwise/pass/fuse/region.hpp>

namespace shardwise::inline v0_1::passes {

template <class Table>
constexpr bool may_move(const Table& t, int i) {  // the region whose root is node i, to a later place
  if (t.of[i].touched || t.of[i].sealed) return false;
  int first = i;
  for (int m = i; m >= 0; m = t.of[m].next) first = m < first ? m : first;
  return first > t.last_update;
}

// Whether the region may be one kernel where it is: within a unit, and no value that it stores on the way, in a room, is
// computed in a place of its own.
template <class Graph, class Table>
constexpr bool may_stand(const Graph& g, const Table& t, const region& r) {
  bool may = !r.keeps_second || !t.of[r.second].placed;
  if (r.lead >= 0) may = may && is_contiguous(g.spec_of(r.member[r.count - 1]));  // such a kernel stores row-major
  for (int k = 0; k < r.stores; ++k) may = may && !t.of[r.stored[k]].placed;
  if (!t.within) return may;
  const int unit = unit_of(g, r.member[0]);
  for (int k = 0; k < r.count; ++k) may = may && unit >= 0 && unit_of(g, r.member[k]) == unit;
  return may;
}

// Region r, whose last member is `root`, stands from now on, if it fits: a stored value is two nodes, the room and what
// it holds afterwards.
template <class Graph, class Table>
constexpr bool adopt(const Graph& g, Table& t, const region& r, int root) {
  if (!r.fits || !may_stand(g, t, r)) return false;
  int more = r.stores + (r.keeps_second ? 1 : 0), fewer = 0;
  const int held = more;
  for (int k = 0; k < r.count; ++k) {
    const int m = r.member[k];
    if (t.of[m].root == m) more -= t.of[m].held;
    if (t.of[m].root == m && m != root) ++fewer;
  }
  if (g.node_count - t.absorbed - fewer + 2 * (t.stores + more) > t.limit) return false;
  int below = -1;
  for (int k = 0; k < r.count; ++k) {
    const int m = r.member[k];
    t.of[m].root = root;
    t.of[m].next = below;
    below = m;
  }
  t.of[root].held = held;
  t.stores += more;
  t.absorbed += fewer;
  return true;
}

// Node i, a step, takes in the region that its operand k comes from; of that one's root it may need another value than
// the root's, and the root's is then stored like any other.
template <class Graph, class Table>
constexpr void absorb(const Graph& g, Table& t, int i, int k, stage_work& work) {
  const int from = t.of[t.of[g.nodes[i].in[k]].behind].root;
  if (from == i || t.of[from].touched || t.of[from].sealed) return;
  if (!t.of[from].step && !(t.leads && may_lead(g, g.nodes[from]))) return;
  if (!same_extents(g.spec_of(from), g.spec_of(i)) || !may_move(t, from)) return;
  region r;
  insert_region(t, i, r);
  insert_region(t, from, r);
  for (int p = g.nodes[i].in[k]; t.is_skipped(p); p = g.nodes[p].in[0]) r.insert(p);
  work.take(200 + 40 * r.count + 12 * r.count * r.count);
  if (r.fits) complete(g, t, r);
  adopt(g, t, r, i);
}

template <class Graph, class Table>
constexpr void join(const Graph& g, Table& t, int second, int i, stage_work& work) {
  if (second < 0 || t.of[second].root != second || !may_move(t, second) || t.of[second].next >= 0 ||
      g.nodes[second].expression >= 0)
    return;
  region r;
  r.insert(second);
  r.insert(i);
  work.take(300);
  complete(g, t, r);
  t.of[i].sealed = adopt(g, t, r, i);
}

// A weight's gradient: (..., n) by (..., k) to (n, k); or of several weights side by side, their dim first of all.
template <class Graph>
constexpr bool is_weight_gradient(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.op != op_code::einsum) return false;
  const auto of = attributes_of<einsum_attributes>(n.a);
  if (of.keeps_sums != 0) return false;
  const int rank = g.spec_of(n.in[0]).rank, stack = g.specs[n.spec].rank - 2;
  if (stack < 0 || stack > 1 || rank < 2 + stack || g.spec_of(n.in[1]).rank != rank) return false;
  for (int d = 0; d + 1 < rank; ++d)
    if (rules::label(of.lhs, d) != rules::label(of.rhs, d)) return false;
  return (stack == 0 || rules::label(of.out, 0) == rules::label(of.lhs, 0)) &&
         rules::label(of.out, stack) == rules::label(of.lhs, rank - 1) &&
         rules::label(of.out, stack + 1) == rules::label(of.rhs, rank - 1);
}

// What else has a kernel that takes in another node: statistics with their norm, reductions of equal rows.
template <class Graph, class Table>
constexpr void visit_kernel(const Graph& g, Table& t, int i, stage_work& work) {
  const node& n = g.nodes[i];
  if (n.op == op_code::norm_apply) {
    if (g.nodes[n.in[1]].op == op_code::norm_stats && g.nodes[n.in[1]].in[0] == n.in[0]) join(g, t, n.in[1], i, work);
  } else if (n.op == op_code::norm_dw) {
    t.of[storage_of(g, n.in[0])].mate = i;
  } else if (n.op == op_code::sum) {
    const bool rows = sums_rows(g, i);
    if (!rows && !sums_stacked_rows(g, i)) return;
    int& mate = t.of[storage_of(g, n.in[0])].mate;
    if (rows && mate >= 0 && g.nodes[mate].op == op_code::norm_dw && g.nodes[mate].in[0] == n.in[0])
      join(g, t, mate, i, work);
    mate = i;
  } else if (is_weight_gradient(g, i)) {
    const int mate = t.of[storage_of(g, n.in[0])].mate;
    if (mate >= 0 && g.nodes[mate].op == op_code::sum &&
        attributes_of<sum_attributes>(g.nodes[mate].a).dims ==
            rules::contracted_dims(n.a, g.spec_of(n.in[0]).rank, g.spec_of(n.in[1]).rank))
      join(g, t, mate, i, work);
  }
}

// Node i, with all nodes before it visited.
template <class Graph, class Table>
constexpr void visit(const Graph& g, Table& t, int i, stage_work& work) {
  const node& n = g.nodes[i];
  if (rules::is_scalar(n.op)) {
    t.of[i].step = is_step(g, i);
    if (t.of[i].step)
      for (int k = 0; k < n.inputs; ++k) absorb(g, t, i, k, work);
  } else if (n.op == op_code::redistribute || t.is_skipped(i)) {
    t.settle(i);
  } else if (t.leads && n.expression < 0) {
    visit_kernel(g, t, i, work);
  }
  if (!t.is_skipped(i)) {
    const int root = t.of[i].root;
    for (int k = 0; k < n.inputs; ++k)
      if (const int from = t.of[t.of[n.in[k]].behind].root; from != root) t.of[from].touched = true;
  }
  if (is_update(n.op)) t.last_update = i;
}

}  // namespace shardwise::inline v0_1::passes

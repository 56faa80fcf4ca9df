// SPDX-License-Identifier: Apache-2.0
// region: nodes of a graph that become one kernel: its limits, its operands, its expression.
#pragma once

#include <bit>

#include <shardwise/graph/kept_gradients.hpp>
#include <shardwise/graph/units.hpp>
#include <shardwise/graph/verify/verify_fused.hpp>

namespace shardwise::inline v0_1::passes {

inline constexpr int max_members = 16;

// Whether node i sums all dims but the last.
template <class Graph>
constexpr bool sums_rows(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.op != op_code::sum) return false;
  const int rank = g.spec_of(n.in[0]).rank;
  return rank > 1 && n.a == shardwise::detail::summed_leading_dims(rank);
}

// Or all but the first and the last: of several values side by side, each one's rows.
template <class Graph>
constexpr bool sums_stacked_rows(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.op != op_code::sum) return false;
  const int rank = g.spec_of(n.in[0]).rank;
  auto of = attributes_of<sum_attributes>(shardwise::detail::summed_leading_dims(rank > 0 ? rank : 1));
  of.dims -= 1;
  return rank > 2 && n.a == pack_attributes(of);
}

// Whether node i casts a sum over rows that a kernel may take in, a bias's or a norm's gradient: it is written where it is read, so
// that it does not stand between the sum and that kernel.
template <class Graph>
constexpr bool casts_row_sum(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.op != op_code::cast || g.spec_of(n.in[0]).type == g.specs[n.spec].type) return false;
  return g.nodes[n.in[0]].op == op_code::norm_dw || sums_rows(g, n.in[0]) || sums_stacked_rows(g, n.in[0]);
}

// Node i belongs to the region of its root, the region's last member, which alone stands in the new graph. Regions are grown in
// program order and never shrink. An evaluator pays for each assignment, so what a node begins with is one value.
struct region_entry {
  int root;
  int next;      // the member before this one in its region, -1: none; from the root downwards
  int behind;    // itself, or the value that a skipped one sees: see steps_over, casts_row_sum
  int uses;      // by nodes and outputs
  int held;      // of a root: how many of its region's values are stored besides its own
  int mate;      // of a value's storage: the reduction over its rows that was met last, -1: none
  bool touched;  // a node outside of the region has read one of its values, so that no member may move down any more
  bool sealed;   // nothing is added
  bool step;     // see is_step; known of nodes that were visited
  bool placed;   // an update says where the value is computed: what other steps may still read
};

template <int Nodes>
struct region_table {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  region_entry of[capacity];
  int last_update = -1;
  int cursor = 0;
  int absorbed = 0, stores = 0;
  int limit = 0;        // nodes that the new graph may have
  bool leads = false;   // whether regions may follow other kernels
  bool within = false;  // whether regions stay within one unit each, and all else as it is

  template <class Graph>
  constexpr void begin(const Graph& g, int nodes, bool follow, bool stay) {
    limit = nodes;
    leads = follow;
    within = stay;
    region_entry fresh{-1, -1, -1, 0, 0, -1, false, false, false, false};
    for (int i = 0; i < capacity; ++i) {
      fresh.root = fresh.behind = i;
      of[i] = fresh;
    }
    for (int k = 0; k < g.output_count; ++k) of[g.outputs[k]].uses += 2;  // never by one node alone
    for (int i = g.node_count - 1; i >= 0; --i) {
      const node& x = g.nodes[i];
      for (int k = 0; k < x.inputs; ++k) ++of[x.in[k]].uses;
      if (x.op == op_code::in_place || (x.op == op_code::pack && of[i].placed))
        for (int k = 0; k < x.inputs; ++k) of[x.in[k]].placed = true;
      else if (x.op == op_code::redistribute ? steps_over(g, i) : follow && !stay && casts_row_sum(g, i))
        of[i].behind = x.in[0];
    }
  }

  // A change of placement along an axis of one rank that one node reads: the region steps over it.
  template <class Graph>
  constexpr bool steps_over(const Graph& g, int i) const {
    const node& n = g.nodes[i];
    return of[i].uses == 1 && g.specs[n.spec].axis_size[attributes_of<redistribute_attributes>(n.a).axis] == 1 &&
           (!within || unit_of(g, i) >= 0);
  }
  constexpr bool is_skipped(int i) const { return of[i].behind != i; }
  // What is skipped, met in program order: the value behind all that are in a row.
  constexpr void settle(int i) {
    if (is_skipped(i)) of[i].behind = of[of[i].behind].behind;
  }
};

// --- what may join --------------------------------------------------------------------------------------------------

// A sum of gradients is none: it is computed over its operand, which a kernel that it followed would have overwritten.
template <class Graph>
constexpr bool is_step(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.inputs == 0 || n.inputs > 2 || n.expression >= 0 || !rules::is_scalar(n.op)) return false;
  if (!(n.a == op_attr{}) || keeps_gradient(g.nodes[n.in[0]])) return false;
  for (int k = 0; k < n.inputs; ++k)
    if (g.spec_of(n.in[k]).type != g.specs[n.spec].type) return false;
  return is_floating(g.specs[n.spec].type);
}

// Kernels that an expression may follow in place: it has their elements' type, so their result is not wider; a sum of squares, which
// is float of two-byte elements, is followed in its own type.
template <class Graph>
constexpr bool may_lead(const Graph& g, const node& n) {
  return n.expression < 0 && !keeps_sums(n) &&
         (n.op == op_code::einsum || n.op == op_code::embedding || n.op == op_code::embedding_dw ||
          n.op == op_code::norm_dx || n.op == op_code::sumsq) &&
         (n.op == op_code::sumsq || kernel_type(g, n) == g.specs[n.spec].type);
}

constexpr bool same_extents(const spec& a, const spec& b) {
  if (a.rank != b.rank || a.type != b.type || a.dyn != b.dyn) return false;
  for (int d = 0; d < a.rank; ++d)
    if (a.extent[d] != b.extent[d]) return false;
  return true;
}

// The node whose very block node i is.
template <class Graph>
constexpr int storage_of(const Graph& g, int i) {
  while (g.nodes[i].op == op_code::redistribute && is_view(g.nodes[i], g.spec_of(g.nodes[i].in[0]), g.spec_of(i)))
    i = g.nodes[i].in[0];
  return i;
}

// --- one region -----------------------------------------------------------------------------------------------------

// The members in program order, then what the expression reads and stores.
struct region {
  int member[max_members];
  int count = 0;
  int lead = -1;              // the kernel that the expression follows
  int second = -1;            // the operation that this kernel computes besides: statistics, a sum over rows
  bool keeps_second = false;  // in a room, the last of the kernel's operands
  int operands[max_fused_inputs];
  int own = 0;     // operands of the kernel
  int values = 0;  // operands of the expression
  int stored[max_fused_inputs];
  int stores = 0;
  int steps = 0, constants = 0;
  bool fits = true;

  constexpr bool has(int i) const {
    for (int k = 0; k < count; ++k)
      if (member[k] == i) return true;
    return false;
  }
  constexpr void insert(int i) {
    if (count == max_members) {
      fits = false;
      return;
    }
    int at = count++;
    for (; at > 0 && member[at - 1] > i; --at) member[at] = member[at - 1];
    member[at] = i;
  }
  constexpr void read(int i) {
    if (own + values == max_fused_inputs) {
      fits = false;
      return;
    }
    operands[own + values++] = i;
  }
  constexpr int slot_of_value(int i) const {
    for (int k = own; k < own + values; ++k)
      if (operands[k] == i) return k - own + (lead >= 0 ? 1 : 0);
    return -1;
  }
};

template <class Table>
constexpr void insert_region(const Table& t, int of, region& r) {
  for (int m = of; m >= 0; m = t.of[m].next) r.insert(m);
}

constexpr bool is_second(const node& n) {
  return n.op == op_code::norm_stats || n.op == op_code::sum || n.op == op_code::norm_dw;
}

// Zero is what an operation without a real parameter has; -0 is a number like others.
constexpr bool has_constant(const node& n) { return std::bit_cast<std::uint64_t>(n.f) != 0; }

// Leads and seconds of the members, operands, stores, counts; `fits` says whether all limits hold.
template <class Graph, class Table>
constexpr void complete(const Graph& g, const Table& t, region& r) {
  const int root = r.member[r.count - 1];
  for (int k = 0; k < r.count; ++k) {
    const int m = r.member[k];
    const node& n = g.nodes[m];
    if (t.of[m].step) {
      ++r.steps;
      if (has_constant(n)) ++r.constants;
    } else if (n.op == op_code::redistribute) {
      continue;
    } else if (r.count > 1 && r.second < 0 && is_second(n) && m != root) {
      r.second = m;
    } else if (r.lead < 0) {
      r.lead = m;
    } else {
      r.fits = false;
    }
  }
  if (r.lead >= 0) {
    const node& n = g.nodes[r.lead];
    if (r.second >= 0 && n.op == op_code::sum) {  // norm_dw_db reads what norm_dw reads
      for (int k = 0; k < 3; ++k) r.operands[r.own++] = g.nodes[r.second].in[k];
    } else {
      for (int k = 0; k < n.inputs; ++k)
        if (r.second < 0 || n.op != op_code::norm_apply || k != 1) r.operands[r.own++] = n.in[k];
    }
    r.keeps_second = r.second >= 0 && (n.op != op_code::norm_apply || t.of[r.second].uses > 1);
    if (r.keeps_second) r.operands[r.own++] = r.second;
  }
  int inside[max_members]{};
  for (int k = 0; k < r.count; ++k) {
    const int m = r.member[k];
    if (!t.of[m].step) continue;
    for (int j = 0; j < g.nodes[m].inputs; ++j) {
      const int operand = g.nodes[m].in[j], p = t.of[operand].behind;
      int at = -1;
      for (int e = 0; e < k && at < 0; ++e)
        if (r.member[e] == p) at = e;
      if (at >= 0) ++inside[at];  // what is stepped over has no other reader
      else if (r.slot_of_value(operand) < 0) r.read(operand);
    }
  }
  for (int k = 0; k + 1 < r.count && r.fits; ++k) {
    const int m = r.member[k];
    if (m == r.second || g.nodes[m].op == op_code::redistribute || t.of[m].uses == inside[k]) continue;
    if (m == r.lead || r.own + r.values + r.stores == max_fused_inputs) r.fits = false;
    else r.stored[r.stores++] = m;
  }
  // a norm's sum is as long as the model has parameters: one sum each, so that expressions do not depend on their number
  if (r.lead >= 0 && g.nodes[r.lead].op == op_code::sumsq && r.steps > 1) r.fits = false;
  r.fits = r.fits && r.steps <= max_steps && r.constants <= (r.lead >= 0 ? 0 : max_constants);
}

// A region that fits as an expression; `constants` are its operations' real parameters.
template <class Graph, class Table>
constexpr expression expression_of(const Graph& g, const Table& t, const region& r, double* constants) {
  const int values = r.values + (r.lead >= 0 ? 1 : 0);
  expression e = begin_expression(values, r.stores, r.lead >= 0);
  int slot[max_members]{}, used = 0;
  for (int k = 0; k < r.count; ++k) {
    const int m = r.member[k];
    const node& n = g.nodes[m];
    slot[k] = 0;
    if (!t.of[m].step) continue;
    expression_step s;
    s.op = n.op;
    int of[2] = {no_slot, no_slot};
    for (int j = 0; j < n.inputs; ++j) {
      const int p = t.of[n.in[j]].behind;
      for (int q = 0; q < k; ++q)
        if (r.member[q] == p) of[j] = slot[q];
      if (of[j] == no_slot) of[j] = r.slot_of_value(n.in[j]);
    }
    s.x = of[0];
    s.y = of[1];
    for (int q = 0; q < r.stores; ++q)
      if (r.stored[q] == m) s.store = q + 1;
    if (has_constant(n)) {
      constants[used++] = n.f;
      s.constant = used;
    }
    slot[k] = values + e.steps();
    e.append(s);
  }
  return e;
}

}  // namespace shardwise::inline v0_1::passes

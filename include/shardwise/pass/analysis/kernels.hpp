// SPDX-License-Identifier: Apache-2.0
// kernel_calls: how many kernels a program runs, and of which operations.
#pragma once

#include <shardwise/graph/text/text.hpp>
#include <shardwise/operations/all.hpp>

namespace shardwise::inline v0_1::passes {

// A node that computes on its rank: neither a view, a leaf, nor a collective.
template <class Graph>
constexpr bool is_kernel(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (!runs_kernel(n.op)) return false;
  return n.op != op_code::redistribute ||
         !(is_view(n, g.spec_of(n.in[0]), g.spec_of(i)) || communicates(shardwise::detail::transition_at(g, i)));
}

// Whether a node casts a parameter to two bytes. Parameters live as long as the program, so no result lies where a neighbour reads.
template <class Graph>
constexpr bool joins_casts(const Graph& g, const node& n) {
  return n.op == op_code::cast && n.expression < 0 && g.nodes[n.in[0]].op == op_code::param &&
         is_low_precision(g.specs[n.spec].type);
}

// Whether a node casts two bytes to float, as gradients are before ranks sum them.
template <class Graph>
constexpr bool widens(const Graph& g, const node& n) {
  return n.op == op_code::cast && n.expression < 0 && is_low_precision(g.specs[g.nodes[n.in[0]].spec].type) &&
         g.specs[n.spec].type == dtype::f32;
}
// Of a cast in a row of casts with a bucket's packs right behind it: the last of those packs, if one of them places its result; else -1.
// A bucket's storage is there from the first result on, and all operands of the row are, so no result lies where a neighbour reads.
template <class Graph>
constexpr int bucket_of_cast(const Graph& g, int i) {
  if (!widens(g, g.nodes[i])) return -1;
  int j = i + 1, last = -1;
  while (j < g.node_count && widens(g, g.nodes[j])) ++j;
  bool placed = false;
  for (; j < g.node_count && g.nodes[j].op == op_code::pack && (last < 0 || g.nodes[j].in[0] == last); last = j++)
    for (int k = 0; k < g.nodes[j].inputs; ++k) placed = placed || g.nodes[j].in[k] == i;
  return placed ? last : -1;
}

// Neighbouring kernels that go out together, as their record says: updates of one optimizer by one group's numbers, casts of parameters
// and casts into one bucket, and the sums of squares that a gradient's norm is made of, each of which may add earlier ones to its own.
template <class Graph>
constexpr bool starts_together(const Graph& g, int before, int i) {
  const node& a = g.nodes[before];
  const node& b = g.nodes[i];
  const launching how = traits_of(a.op).launch;
  if (a.op != b.op || how == launching::alone) return false;
  if (kernel_type(g, a) != kernel_type(g, b)) return false;  // one kernel, of one type
  if (a.op == op_code::cast) {
    if (g.specs[g.nodes[a.in[0]].spec].type != g.specs[g.nodes[b.in[0]].spec].type) return false;
    if (joins_casts(g, a) && joins_casts(g, b)) return true;
    const int bucket = bucket_of_cast(g, before);
    return bucket >= 0 && bucket == bucket_of_cast(g, i);
  }
  if (how == launching::together) return optimizer_group(a.op, a.a) == optimizer_group(b.op, b.a);
  const auto joins = [&](const node& n) { return n.expression < 0 || adds_in_order(g.expressions[n.expression]); };
  return g.specs[a.spec].rank == 0 && g.specs[b.spec].rank == 0 && joins(a) && joins(b);
}

struct kernel_counts {
  int kernels = 0;                             // as many as nodes compute
  int launches = 0;                            // those that go out together counted once
  int of[static_cast<int>(op_code::count)]{};  // launches by operation
};

template <class Graph>
constexpr kernel_counts kernel_calls(const Graph& g) {
  kernel_counts c;
  int before = -1;  // the call before, if it is a kernel
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    if (!runs_kernel(n.op)) continue;
    if (!is_kernel(g, i)) {
      if (n.op == op_code::redistribute && !is_view(n, g.spec_of(n.in[0]), g.spec_of(i))) before = -1;
      continue;
    }
    ++c.kernels;
    if (before < 0 || !starts_together(g, before, i)) {
      ++c.launches;
      ++c.of[static_cast<int>(n.op)];
    }
    before = i;
  }
  return c;
}

}  // namespace shardwise::inline v0_1::passes

// SPDX-License-Identifier: Apache-2.0
// verify_fused: whether a fused node is what its operations are one by one, by their own rules.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/operations/infer.hpp>

namespace shardwise::inline v0_1 {

// Of a product: whether it stores the sum of lhs over the contracted dims, too.
constexpr bool keeps_sums(const node& n) {
  return n.op == op_code::einsum && attributes_of<einsum_attributes>(n.a).keeps_sums != 0;
}

constexpr bool is_fused(const node& n) {
  return n.expression >= 0 || n.op == op_code::fused || n.op == op_code::norm || n.op == op_code::norm_dw_db ||
         n.op == op_code::norm_dx_dw || n.op == op_code::nll_dx_loss || keeps_sums(n);
}

namespace detail {

// Placements along axes of one rank mean nothing, and changing them there is no operation: fused regions step over it.
constexpr spec without_trivial_axes(spec s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.axis_size[a] == 1) s.place[a] = replicate_value();
  return s;
}

constexpr bool alike(const spec& a, const spec& b) {
  bool same = a.rank == b.rank && a.type == b.type;
  for (int d = 0; same && d < a.rank; ++d) same = same_extent(a, d, b, d);
  // replicate and reduced are the same blocks, and a change between the two no operation
  for (int x = 0; same && x < a.axes; ++x)
    same = a.place[x] == b.place[x] || (a.place[x].is_whole() && b.place[x].is_whole());
  return same;
}

// A row above another.
constexpr spec rows_of(const spec& row, int count) {
  spec s = row;
  s.rank = 2;
  s.extent[0] = count;
  s.extent[1] = row.extent[0];
  s.dyn = row.dyn << max_dyn_sizes;
  make_contiguous(s);
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard()) s.place[a].dim = 1;
  return s;
}

constexpr op_attr summed_leading_dims(int rank) { return attributes<sum_attributes>((std::int64_t{1} << (rank - 1)) - 1); }

}  // namespace detail

// A part is a room that the node it depends on has among its operands.
template <class Graph>
constexpr bool part_fits(const Graph& g, const node& n) {
  if (n.inputs != 2 || g.nodes[n.in[0]].op != op_code::room || g.nodes[n.in[0]].spec != n.spec) return false;
  const node& writer = g.nodes[n.in[1]];
  for (int k = 0; k < writer.inputs; ++k)
    if (writer.in[k] == n.in[0]) return true;
  return false;
}

template <class Graph>
constexpr bool fused_fits(const Graph& g, const node& n) {
  const spec out = detail::without_trivial_axes(g.specs[n.spec]);
  spec in[max_inputs]{};
  for (int k = 0; k < n.inputs; ++k) in[k] = detail::without_trivial_axes(g.spec_of(n.in[k]));
  const auto is_room = [&](int k, const outcome& o) {
    return k < n.inputs && g.nodes[n.in[k]].op == op_code::room && !o.error && detail::alike(o.out, in[k]);
  };
  // the kernel that an expression follows
  const expression e = n.expression < 0 ? no_expression : g.expressions[n.expression];
  const int own = n.inputs - e.operands();
  if (own < 0 || (n.op == op_code::fused) == (own > 0)) return false;
  if (!is_contiguous(g.specs[n.spec]) && (n.op != op_code::fused || !is_channels_last(g.specs[n.spec]))) return false;
  spec slot[16]{};
  int filled = 0;
  if (n.op == op_code::norm) {
    const auto of = attributes_of<norm_attributes>(n.a);
    const op_attr a = attributes<norm_attributes>(of.rms, of.biased);
    const int with = own - (of.keeps_statistics != 0 ? 1 : 0);
    const outcome stats = infer(op_code::norm_stats, a, in, 1);
    if (of.keeps_statistics != 0 && !is_room(with, stats)) return false;
    const spec all[max_inputs] = {in[0], stats.out, in[1], in[2]};
    const outcome o = infer(op_code::norm_apply, a, all, with + 1);
    if (stats.error || o.error) return false;
    slot[filled++] = o.out;
  } else if (n.op == op_code::norm_dw_db) {
    const outcome o = infer(op_code::sum, detail::summed_leading_dims(in[0].rank), in, 1);
    if (own != 4 || o.error || !is_room(3, infer(op_code::norm_dw, n.a, in, 3))) return false;
    slot[filled++] = o.out;
  } else if (n.op == op_code::norm_dx_dw) {
    if (own != 4) return false;
    const auto of = attributes_of<norm_attributes>(n.a);
    const op_attr a = attributes<norm_attributes>(of.rms);
    const outcome stats = infer(op_code::norm_stats, a, in + 1, 1);
    const spec all[max_inputs] = {in[0], in[1], stats.out, in[2]};
    const outcome o = infer(op_code::norm_dx, a, all, 4), w = infer(op_code::norm_dw, a, all, 3);
    const outcome b = infer(op_code::sum, detail::summed_leading_dims(in[0].rank), in, 1);
    if (stats.error || o.error || w.error || (of.biased != 0 && (b.error || !detail::alike(b.out, w.out)))) return false;
    if (!is_room(3, {{}, detail::rows_of(w.out, of.biased != 0 ? 2 : 1)})) return false;
    slot[filled++] = o.out;
  } else if (n.op == op_code::nll_dx_loss) {
    if (own != 4) return false;
    const outcome norm = infer(op_code::lse, op_attr{}, in + 1, 1);
    const spec forward[max_inputs] = {in[1], norm.out, in[2]}, back[max_inputs] = {in[0], in[1], norm.out, in[2]};
    const outcome loss = infer(op_code::nll, n.a, forward, 3), o = infer(op_code::nll_dx, n.a, back, 4);
    if (norm.error || loss.error || o.error || !is_room(3, loss)) return false;
    slot[filled++] = o.out;
  } else if (n.op != op_code::fused) {
    op_attr a = n.a;
    int operands = own;
    if (keeps_sums(n)) {
      const auto labels = attributes_of<einsum_attributes>(n.a);
      a = attributes<einsum_attributes>(labels.lhs, labels.rhs, labels.out);
      operands = 2;
      const op_attr sums = attributes<sum_attributes>(rules::contracted_dims(a, in[0].rank, in[1].rank));
      if (own != 3 || !is_room(2, infer(op_code::sum, sums, in, 1))) return false;
    }
    const outcome o = infer(n.op, a, in, operands);
    if (o.error) return false;
    slot[filled++] = detail::without_trivial_axes(o.out);
  }
  for (int k = own; filled < e.values(); ++k) slot[filled++] = in[k];
  const int rooms = n.inputs - e.stores();
  for (int i = 0; i < e.steps(); ++i) {
    const expression_step s = e.at(i);
    if (!rules::is_scalar(s.op) || s.x >= filled || (s.y >= filled && s.y != no_slot)) return false;
    const spec of[2] = {slot[s.x], slot[s.y]};
    const outcome o = infer(s.op, op_attr{}, of, s.y == no_slot ? 1 : 2);
    if (o.error || (s.store > 0 && !is_room(rooms + s.store - 1, o))) return false;
    slot[filled++] = o.out;
  }
  return filled > 0 && detail::alike(slot[filled - 1], out);
}

}  // namespace shardwise::inline v0_1

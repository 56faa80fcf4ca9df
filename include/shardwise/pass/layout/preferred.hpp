// SPDX-License-Identifier: Apache-2.0
// preferred_nodes: what torch.compile would store channels-last beside the convolutions; and which reader needs what it reads stored as
// the trace recorded it.
#pragma once

#include <shardwise/graph/units.hpp>
#include <shardwise/pass/layout/split.hpp>

namespace shardwise::inline v0_1::passes {

// A product of matrices for each of a batch, which preferences do not pass.
constexpr bool is_batched_product(const node& n, const spec& lhs, const spec& rhs, const spec& out) {
  if (n.op != op_code::einsum) return false;
  const auto of = attributes_of<einsum_attributes>(n.a);
  for (int d = 0; d < lhs.rank; ++d) {
    const int label = rules::label(of.lhs, d);
    if (rules::find_label(of.rhs, rhs.rank, label) >= 0 && rules::find_label(of.out, out.rank, label) >= 0) return true;
  }
  return false;
}

// Law, within each part of a graph for which channels-last was chosen: a node is preferred if it is a convolution, or one of its
// readers is preferred; then, up to the part's last convolution, if it reads a preferred one. A batched product passes neither on.
// Adjoints of convolutions count as convolutions.
template <int Nodes>
struct preferred_nodes {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  bool is[capacity];

  template <class Graph>
  constexpr void find(const Graph& g, const layout_choice<Nodes>& choice) {
    const int* const of = choice.parts.of;
    int last[capacity];  // the last convolution of a part
    for (int i = 0; i < capacity; ++i) {
      is[i] = false;
      last[i] = -1;
    }
    if (!choice.any) return;
    for (int i = g.node_count - 1; i >= 0; --i) {
      const node& n = g.nodes[i];
      if (of[i] < 0 || !choice.chosen[of[i]]) continue;
      if (convolving_of(g, n) != convolving::none) {
        is[i] = true;
        if (last[of[i]] < 0) last[of[i]] = i;
      } else if (is[i] && blocks(g, n)) {
        is[i] = false;
      }
      for (int k = 0; is[i] && k < n.inputs; ++k) is[n.in[k]] = is[n.in[k]] || of[n.in[k]] == of[i] || of[n.in[k]] < 0;
    }
    for (int i = 0; i < g.node_count; ++i) {  // readers
      const node& n = g.nodes[i];
      if (of[i] < 0 || is[i] || last[of[i]] < 0) continue;
      bool reads = false;  // one before the last convolution
      for (int k = 0; k < n.inputs; ++k) {
        const int x = n.in[k];
        reads = reads || (is[x] && (of[x] == of[i] || of[x] < 0) && x < last[of[i]]);
      }
      is[i] = reads && !blocks(g, n);
    }
  }

 private:
  template <class Graph>
  static constexpr bool blocks(const Graph& g, const node& n) {
    return n.op == op_code::einsum && is_batched_product(n, g.spec_of(n.in[0]), g.spec_of(n.in[1]), g.specs[n.spec]);
  }
};

// How a node takes an operand that is stored in another order than the trace recorded.
enum class layout_need : std::uint8_t {
  any,    // by its strides
  copy,   // as a copy in the recorded order
  strict  // not at all: whoever computes it stores it as recorded
};

// The table of constraints. Views were traced with the strides of what they view; cross entropy takes rows of logits as they lie, as
// torch.compile's nll_loss2d_backward does; a user's own operation and functions of blocks get dense blocks. Collectives, packs,
// updates and what stands in a unit have neighbours that nothing may come between.
template <class Graph>
constexpr layout_need layout_need_of(const Graph& g, int i, int k) {
  const node& n = g.nodes[i];
  const operation& o = record_of(g, n);
  if (n.expression >= 0 || unit_of(g, i) >= 0 || is_update(n.op)) return layout_need::strict;
  if (o.kind == operation_kind::pointwise) return layout_need::any;
  for (const op_code op :
       {op_code::redistribute, op_code::wait, op_code::relabel, op_code::pack, op_code::unpack, op_code::part, op_code::room,
        op_code::fused, op_code::norm, op_code::norm_dw_db, op_code::norm_dx_dw, op_code::nll_dx_loss, op_code::adam_term,
        op_code::adam_term_with, op_code::muon_direction, op_code::getitem})
    if (n.op == op) return layout_need::strict;
  for (const op_code op : {op_code::lse, op_code::nll, op_code::nll_dx, op_code::opaque})
    if (n.op == op) return layout_need::copy;
  if (o.kind == operation_kind::view) return layout_need::copy;
  if (is_custom(g, n))
    return o.kind == operation_kind::pointwise || (o.strided && g.spec_of(n.in[k]).rank == 4) ? layout_need::any
                                                                                              : layout_need::copy;
  return layout_need::any;
}

}  // namespace shardwise::inline v0_1::passes

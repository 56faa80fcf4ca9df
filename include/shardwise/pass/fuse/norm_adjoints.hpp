// SPDX-License-Identifier: Apache-2.0
// join_norm_adjoints: what goes back through a norm, to its operand, its weight and its bias, as one kernel.
#pragma once

#include <shardwise/graph/verify/verify_fused.hpp>
#include <shardwise/pass/fuse/region.hpp>
#include <shardwise/pass/fuse/worth.hpp>
#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace shardwise::inline v0_1 {

struct comm_fusion;
struct list_optimizer;
struct merge_products;
struct fuse_pointwise;
struct fuse_kernels;

namespace passes {

// Of those norms that Worth says are worth it.
template <class Worth>
struct norm_adjoint_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::to, base::cursor;

    int dx[capacity], grads[capacity];  // of statistics: their adjoints, -1: none, -2: several
    int uses[capacity];
    int first_user[capacity];
    int other[capacity];  // of an adjoint that is joined: the other one, -1: it stays
    bool packed[capacity], unasked[capacity];

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i) {
        dx[i] = grads[i] = first_user[i] = other[i] = -1;
        uses[i] = 0;
        packed[i] = unasked[i] = false;
      }
      const auto note = [](int& known, int i) { known = known == -1 ? i : -2; };
      for (int i = g.node_count - 1; i >= 0; --i) {
        const node& n = g.nodes[i];
        for (int k = 0; k < n.inputs; ++k) {
          first_user[n.in[k]] = i;
          ++uses[n.in[k]];
          if (n.op == op_code::pack) packed[n.in[k]] = true;
        }
        if (n.op == op_code::norm_dx) note(dx[n.in[2]], i);
        if (n.op == op_code::norm_dw_db || n.op == op_code::norm_dw) note(grads[n.in[2]], i);
      }
      for (int k = 0; k < g.output_count; ++k) ++uses[g.outputs[k]];
    }

    // The node that computes these statistics.
    static constexpr int maker_of(const In& g, int stats) {
      return g.nodes[stats].op == op_code::part ? g.nodes[stats].in[1] : stats;
    }
    // What a room holds once `writer` has run; node_count if nothing asks.
    static constexpr int value_of(const In& g, int room, int writer) {
      int i = writer + 1;
      while (i < g.node_count && !(g.nodes[i].op == op_code::part && g.nodes[i].in[0] == room)) ++i;
      return i;
    }
    // The gradient of the weight, which stands in a room where the result is that of the bias.
    static constexpr int weight_part(const In& g, int grad) {
      return g.nodes[grad].op == op_code::norm_dw_db ? value_of(g, g.nodes[grad].in[3], grad) : grad;
    }

    constexpr bool may_join(const In& g, int stats) const {
      const int a = dx[stats], b = grads[stats], maker = maker_of(g, stats);
      if (a < 0 || b < 0 || (g.nodes[maker].op != op_code::norm && g.nodes[maker].op != op_code::norm_stats)) return false;
      const node &x = g.nodes[a], &y = g.nodes[b];
      const int more = x.inputs - 4;  // of the expression behind it
      if (more > max_fused_inputs - 4 || y.expression >= 0 || storage_of(g, x.in[0]) != storage_of(g, y.in[0]) ||
          storage_of(g, x.in[1]) != storage_of(g, y.in[1]) || storage_of(g, x.in[1]) != storage_of(g, g.nodes[maker].in[0]))
        return false;
      if (x.expression >= 0 && g.expressions[x.expression].stores() > 0) return false;
      if (!Worth::joins(g, g.spec_of(x.in[1]))) return false;
      if (is_variable_leaf(g.nodes[storage_of(g, x.in[1])].op)) return false;  // which an update may have changed since
      const int part = weight_part(g, b);
      if (part >= g.node_count) return false;
      const spec &dw = g.spec_of(part), &db = g.specs[y.spec];
      if (!is_contiguous(dw) || (part != b && !shardwise::detail::alike(dw, db))) return false;
      for (const int value : {part, b})
        if (const int u = first_user[value]; value < a && u >= 0 && u <= a && u != part) return false;
      return true;
    }

    constexpr void write_joined(builder& b, const In& g, int a, int grad) {
      const int part = weight_part(g, grad), stats = g.nodes[a].in[2];
      const bool biased = part != grad;
      const spec rows = shardwise::detail::rows_of(g.spec_of(part), biased ? 2 : 1);
      const int scope = g.nodes[grad].scope, room = b.emit(op_code::room, {}, 0, b.intern(rows), scope);
      node n = g.nodes[a];
      n.op = op_code::norm_dx_dw;
      n.f = g.nodes[maker_of(g, stats)].f;
      const auto of = attributes_of<norm_attributes>(n.a);
      n.a = pack_attributes(norm_attributes{.rms = of.rms, .biased = biased ? 1 : 0, .keeps_statistics = 0});
      const int from[] = {to[g.nodes[a].in[0]], to[g.nodes[a].in[1]], to[g.nodes[a].in[3]], room};
      for (int k = 0; k < 4; ++k) n.in[k] = from[k];
      for (int k = 4; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
      to[a] = b.append(n);
      const int values = b.emit(op_code::part, {}, 0, b.intern(rows), scope, room, to[a]);
      for (int k = 0; k < (biased ? 2 : 1); ++k) {
        const int old = k == 0 ? part : grad;
        spec row = rows;
        row.extent[0] = 1;
        row.offset = k * rows.stride[0] != 0 ? 1 : 0;
        const auto cut = slice_attributes{.dim = 0, .start = k, .length = 1, .one_of_many = 0};
        const int slice = b.emit(op_code::slice, pack_attributes(cut), 0, b.intern(row), scope, values);
        to[old] = b.emit(op_code::reshape, pack_extents(g.spec_of(old)), 0, b.intern(g.spec_of(old)), scope, slice);
        if (packed[old])  // a pack says where its operands' own storage lies
          to[old] = b.emit(op_code::contiguous, {}, 0, b.intern(g.spec_of(old)), scope, to[old]);
      }
    }

    // Statistics that nobody else asks for are not stored.
    constexpr void write_norm(builder& b, const In& g, int i) {
      const int last = g.nodes[i].inputs - 1, stats = value_of(g, g.nodes[i].in[last], i);
      base::copy(b, g, i);
      if (stats == g.node_count || g.nodes[i].expression >= 0 || uses[stats] != 2 || !may_join(g, stats)) return;
      node& n = b.nodes[to[i]];
      auto of = attributes_of<norm_attributes>(n.a);
      of.keeps_statistics = 0;
      n.a = pack_attributes(of);
      n.in[last] = -1;
      n.inputs = last;
      unasked[stats] = true;
    }

    constexpr bool step(const In& g, builder& b) {
      if (cursor > g.node_count) return false;
      const int i = cursor++;
      if (i == g.node_count) {
        base::set_outputs(g);
      } else {
        const node& n = g.nodes[i];
        if ((n.op == op_code::norm_stats || n.op == op_code::part) && may_join(g, i)) {
          other[dx[i]] = grads[i];
          other[grads[i]] = dx[i];
        }
        if (n.op == op_code::norm_dx && other[i] >= 0) write_joined(b, g, i, other[i]);
        else if (n.op == op_code::norm && attributes_of<norm_attributes>(n.a).keeps_statistics != 0) write_norm(b, g, i);
        else if (to[i] < 0 && !unasked[i] && !is_joined(g, i)) base::copy(b, g, i);
      }
      return cursor <= g.node_count;
    }
    // Gradients that the joined kernel computes later, and their rooms.
    constexpr bool is_joined(const In& g, int i) const {
      if (g.nodes[i].op == op_code::part) return other[g.nodes[i].in[1]] >= 0;
      return other[i] >= 0;
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    constexpr int most = 16;
    int adjoints = 0, kinds = 0, kind[most]{};  // weights of one spec need the same specs
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::norm_dx) continue;
      const int s = g.nodes[g.nodes[i].in[3]].spec;
      ++adjoints;
      int k = 0;
      while (k < kinds && k < most && kind[k] != s) ++k;
      if (k < kinds && k < most) continue;
      if (k < most) kind[k] = s;
      ++kinds;
    }
    return {g.node_count + 8 * adjoints, g.spec_count + 8 * kinds};
  }
};

template <class Worth>
struct joining_norm_adjoints : rewriting<norm_adjoint_rules<Worth>> {
  using apply_after = passes_list<cancel_redistributions, merge_common, comm_fusion, list_optimizer, merge_products,
                                  fuse_pointwise, fuse_kernels>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

}  // namespace passes

// The adjoints of a norm are one kernel, which reads the cotangent and the operand once and computes the rows' statistics
// anew instead of reading what the forward part stored. Every value is the same, bit for bit. The price: the statistics'
// arithmetic once more. The gradients of weight and bias lie side by side, so a pass that packs gradients must run before; each gradient
// that such a pack places (a bucket's, a list's) is copied there, one short kernel more, which the tables of times do not count.
struct join_norm_adjoints : passes::joining_norm_adjoints<passes::where_possible> {};

}  // namespace shardwise::inline v0_1

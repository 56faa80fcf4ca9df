// SPDX-License-Identifier: Apache-2.0
// join_cross_entropy: the loss of each row and what goes back to its logits as one kernel.
#pragma once

#include <shardwise/graph/verify/verify_fused.hpp>
#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/fuse/worth.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace shardwise::inline v0_1 {

struct comm_fusion;
struct list_optimizer;
struct merge_products;
struct fuse_pointwise;
struct fuse_kernels;

namespace passes {

// Of those rows of logits that Worth says are worth it.
template <class Worth>
struct cross_entropy_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::to, base::cursor;

    int loss[capacity],
        slope[capacity];  // of a log-sum-exp: the one nll and the one nll_dx that read it, -1: none, -2: several
    int uses[capacity];
    int before[capacity];  // of a node: the log-sum-exp at which it is written, -1: it stays where it is

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i) {
        loss[i] = slope[i] = before[i] = -1;
        uses[i] = 0;
      }
      const auto note = [](int& known, int i) { known = known == -1 ? i : -2; };
      for (int i = 0; i < g.node_count; ++i) {
        const node& n = g.nodes[i];
        for (int k = 0; k < n.inputs; ++k) ++uses[n.in[k]];
        if (n.op == op_code::nll) note(loss[n.in[1]], i);
        if (n.op == op_code::nll_dx) note(slope[n.in[2]], i);
      }
      for (int k = 0; k < g.output_count; ++k) ++uses[g.outputs[k]];
      for (int i = 0; i < g.node_count; ++i)
        if (g.nodes[i].op == op_code::lse && may_join(g, i) && !move_cotangent(g, i)) loss[i] = slope[i] = -1;
    }

    constexpr bool is_joined(int i) const { return loss[i] >= 0 && slope[i] >= 0; }

    constexpr bool may_join(const In& g, int i) {
      bool joins = is_joined(i) && uses[i] == 2 && g.nodes[i].expression < 0;
      if (joins) {
        const node &l = g.nodes[loss[i]], &s = g.nodes[slope[i]];
        joins = l.in[0] == g.nodes[i].in[0] && s.in[1] == l.in[0] && s.in[3] == l.in[2] && l.a == s.a && l.expression < 0 &&
                s.expression < 0 && is_contiguous(g.specs[l.spec]) && is_contiguous(g.specs[s.spec]) &&
                Worth::joins_loss(g, g.spec_of(l.in[0]));
      }
      if (!joins) loss[i] = slope[i] = -1;
      return joins;
    }

    // What the cotangent and the targets are computed by behind node i is written there. False where that reads the loss, or where it
    // could see another value, or be a collective at another place among others.
    constexpr bool move_cotangent(const In& g, int i) {
      for (int k = i + 1; k < slope[i]; ++k)
        if (is_update(g.nodes[k].op) || g.nodes[k].op == op_code::assign || g.nodes[k].op == op_code::in_place) return false;
      before[slope[i]] = i;  // so that the walk begins
      bool good = true;
      for (int k = slope[i]; k > i && good; --k) {
        if (before[k] != i) continue;
        const node& n = g.nodes[k];
        good = k == slope[i] || may_move(g, k);
        for (int j = 0; j < n.inputs; ++j) {
          const int x = n.in[j];
          if (k == slope[i] && x == i) continue;       // its own log-sum-exp
          if (x >= i && before[x] < 0) before[x] = i;  // else written at an earlier one
        }
      }
      good = good && before[i] != i;
      before[slope[i]] = -1;
      if (!good)
        for (int k = i; k < slope[i]; ++k)
          if (before[k] == i) before[k] = -1;
      return good;
    }
    static constexpr bool may_move(const In& g, int k) {
      if (communicates(shardwise::detail::transition_at(g, k)) || rules::is_random(g.nodes[k].op)) return false;
      if (is_custom(g, g.nodes[k]) && record_of(g, g.nodes[k]).writes_into_first) return false;
      for (const op_code op : {op_code::wait, op_code::opaque, op_code::room, op_code::part, op_code::pack, op_code::unpack,
                               op_code::copy_, op_code::advance, op_code::lse})
        if (g.nodes[k].op == op) return false;
      return !is_leaf(g.nodes[k].op);
    }

    constexpr void write_joined(builder& b, const In& g, int i) {
      for (int k = i + 1; k < slope[i]; ++k)
        if (before[k] == i && to[k] < 0) base::copy(b, g, k);
      node n = g.nodes[slope[i]];
      const int spec_id = g.nodes[loss[i]].spec, scope = g.nodes[i].scope;
      const int room = b.emit(op_code::room, {}, 0, b.intern(g.specs[spec_id]), scope);
      n.op = op_code::nll_dx_loss;
      n.scope = scope;
      const int from[] = {to[n.in[0]], to[n.in[1]], to[n.in[3]], room};
      for (int k = 0; k < 4; ++k) n.in[k] = from[k];
      to[slope[i]] = b.append(n);
      to[loss[i]] = b.emit(op_code::part, {}, 0, b.intern(g.specs[spec_id]), scope, room, to[slope[i]]);
    }

    constexpr bool step(const In& g, builder& b) {
      if (cursor > g.node_count) return false;
      const int i = cursor++;
      if (i == g.node_count) base::set_outputs(g);
      else if (is_joined(i)) write_joined(b, g, i);
      else if (to[i] < 0) base::copy(b, g, i);
      return cursor <= g.node_count;
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    int losses = 0;
    for (int i = 0; i < g.node_count; ++i) losses += g.nodes[i].op == op_code::nll ? 1 : 0;
    return {g.node_count + 2 * losses, g.spec_count};
  }
};

template <class Worth>
struct joining_cross_entropy : rewriting<cross_entropy_rules<Worth>> {
  using apply_after = passes_list<cancel_redistributions, merge_common, comm_fusion, list_optimizer, merge_products,
                                  fuse_pointwise, fuse_kernels>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

}  // namespace passes

// Where the gradient of a cross entropy's rows is known before their loss, as that of a mean or a sum is, both are one kernel, which
// leaves the gradient in the logits' place; on GPUs a row of whole packs that a block's shared memory holds is read once. Values are the same; on hosts in every bit. Left
// as they are: losses whose gradient depends on themselves, or on a collective behind the logits (a count of targets over ranks), and
// classes that ranks share. The price: the gradient's storage is taken as soon as the loss is computed; where something else reads the
// logits afterwards, such as an accuracy, it is not theirs.
struct join_cross_entropy : passes::joining_cross_entropy<passes::where_possible> {};

}  // namespace shardwise::inline v0_1

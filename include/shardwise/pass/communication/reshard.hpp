// SPDX-License-Identifier: Apache-2.0
// reshard_parameters: what the backward pass reads of parameters that a group has freed after the forward pass is gathered again.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/framework/sweep.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

struct reshard_rules {
  // The gathered parameter that node i is, or sees differently, -1: none. `of`: of the nodes before it.
  template <class Graph>
  static constexpr int gathered(const Graph& g, const std::int32_t* of, int i) {
    if (gathers_freed(g, i)) return i;
    const node& n = g.nodes[i];
    if (n.inputs != 1 || of[n.in[0]] < 0 || !may_view(n.op)) return -1;
    return is_view(n, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec]) ? of[n.in[0]] : -1;
  }

  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::to;
    bool forward[base::capacity];        // what outputs and written buffers depend on
    std::int32_t whole[base::capacity];  // of forward nodes: see gathered
    std::int32_t again[base::capacity];  // of those: what the backward pass reads instead, -1: nothing yet
    bool needed[base::capacity];         // of gathers: the backward pass reads it
    std::int32_t unmarked, unlisted;     // nodes below it, from it on
    bool batched;                        // what is gathered again is

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < base::capacity; ++i) forward[i] = needed[i] = false, whole[i] = again[i] = -1;
      for (int k = 0; k < g.output_count; ++k) forward[g.outputs[k]] = true;
      unmarked = g.node_count;
      unlisted = 0;
      batched = false;
    }
    constexpr bool step(const In& g, builder& b) {
      if (unmarked > 0) mark(g, --unmarked);
      else if (unlisted < g.node_count) list(g, unlisted++);
      else if (this->cursor < g.node_count) write(g, b, this->cursor++);
      else {
        base::set_outputs(g);
        if (batched && !b.overflowed()) number_batches(b);  // a batch that is gathered again is another one
        return false;
      }
      return true;
    }

   private:
    constexpr void mark(const In& g, int i) {
      const node& n = g.nodes[i];
      forward[i] = forward[i] || (n.op == op_code::assign && g.nodes[n.in[0]].op != op_code::param);
      if (!forward[i]) return;
      for (int k = 0; k < n.inputs; ++k) forward[n.in[k]] = true;
    }
    constexpr void list(const In& g, int i) {
      if (forward[i]) {
        whole[i] = gathered(g, whole, i);
        return;
      }
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k)
        for (int w = whole[n.in[k]]; w >= 0 && !needed[w]; w = whole[g.nodes[w].in[0]]) needed[w] = true;
    }
    constexpr void write(const In& g, builder& b, int i) {
      const node& n = g.nodes[i];
      each_starting(g, i, [&](int j) {
        for (int k = 0; k < g.nodes[j].inputs && !forward[j]; ++k)
          if (whole[g.nodes[j].in[k]] >= 0) make_again(g, b, g.nodes[j].in[k]);
      });
      base::copy(b, g, i);
      if (forward[i] || to[i] >= b.node_capacity) return;
      for (int k = 0; k < n.inputs; ++k)
        if (whole[n.in[k]] >= 0) b.nodes[to[i]].in[k] = again[n.in[k]];
    }
    constexpr void make_again(const In& g, builder& b, int i) {
      if (again[i] >= 0) return;
      if (whole[i] != i) {
        make_again(g, b, g.nodes[i].in[0]);
        again[i] = copied(b, g.nodes[i], again[g.nodes[i].in[0]]);
        return;
      }
      int first = i, last = i;  // of its group, which stands together
      while (first > 0 && is_beside(g, first - 1, i)) --first;
      while (last + 1 < g.node_count && is_beside(g, last + 1, i)) ++last;
      // over two axes: what they are gathered from, and its waits, come before all of them
      for (int k = first; k <= last; ++k)
        if (const int from = g.nodes[k].in[0]; needed[k] && whole[from] >= 0) make_again(g, b, from);
      for (int k = first; k <= last; ++k) {
        if (!needed[k] || again[k] >= 0) continue;
        node n = g.nodes[k];
        auto of = attributes_of<redistribute_attributes>(n.a);
        of.unshard = static_cast<std::int64_t>(unsharding::again);
        n.a = pack_attributes(of);
        batched = batched || of.batch != 0;
        again[k] = copied(b, n, whole[n.in[0]] >= 0 ? again[n.in[0]] : to[n.in[0]]);
        this->work.take(60);
      }
    }
    constexpr bool is_beside(const In& g, int k, int i) const {
      return whole[k] == k && gathers_beside(g.nodes[k], g.nodes[i]);
    }
    static constexpr int copied(builder& b, node n, int operand) {
      n.in[0] = operand;
      return b.append(n);
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    std::int32_t of[Graph::node_capacity > 0 ? Graph::node_capacity : 1];
    int more = 0;
    for (int i = 0; i < g.node_count; ++i) more += (of[i] = gathered(g, of, i)) >= 0 ? 1 : 0;
    return {g.node_count + more, g.spec_count};
  }
};

}  // namespace passes

// Parameters of a group that frees them after the forward pass (reshard_after_forward) are gathered again for the backward pass:
// side by side, right before it first reads one of them, and only those that it reads. Every value is the same, bit for bit. The
// price: those gathers once more; for it the whole parameters are not stored between their two uses.
//
// Law: a group's gathers of the forward pass stand side by side, as a trace leaves them. A plan with fully_shard implies this pass
// (module/plan_passes.hpp).
struct reshard_parameters : passes::rewriting<passes::reshard_rules> {
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// batch_collectives: neighbouring collectives of one module become one.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/pass/framework/holding.hpp>

namespace shardwise::inline v0_1 {

struct comm_fusion;
struct merge_common;
struct cancel_redistributions;
struct recompute;

namespace passes {

// Batches are numbered as they are opened, so by the law of groups no two of them wait for each other. A batch is written where its last member stands; what stood between its
// members and depends on one is written behind it, and with it what must not overtake that.
struct batch_rules {
  template <class In, class Out>
  struct state : grouping_state<In, Out> {
    using base = grouping_state<In, Out>;
    using base::capacity, base::to, base::work, base::waiting, base::waits;
    static constexpr int step_cost = 60;

    int batch[capacity];                                // of a collective
    int first_member[capacity], next_member[capacity];  // by batch, by member
    int last_member[capacity], members[capacity]{};     // by batch
    int open[capacity]{};                               // batches that may still grow
    int opened = 0, batches = 0;
    std::int64_t numbers = 0;  // of those written

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i) batch[i] = first_member[i] = next_member[i] = last_member[i] = -1;
    }

    // What may stand between neighbours: what computes nothing, copies, scales, and other redistributions.
    static constexpr bool stands_between(const In& g, int i) {
      const node& n = g.nodes[i];
      if (!runs_kernel(n.op) || n.op == op_code::redistribute || n.op == op_code::contiguous || n.op == op_code::scale)
        return true;
      return n.inputs > 0 && may_view(n.op) && is_view(n, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec]);
    }
    static constexpr bool are_like(const In& g, int a, int b) {
      return g.nodes[a].scope == g.nodes[b].scope && is_batchable(g, a, b);
    }

    // The batch of collective i, which depends on batches below `d`.
    constexpr int join(const In& g, int i, int d) {
      int at = 0;
      while (at < opened && !are_like(g, first_member[open[at]], i)) ++at;
      if (at == opened) open[opened++] = -1;
      if (open[at] < 0 || d > open[at]) open[at] = batches++;
      const int b = open[at];
      if (members[b]++ == 0) first_member[b] = i;
      else next_member[last_member[b]] = i;
      return last_member[b] = i, b;
    }

    constexpr void group(const In& g, int i) {
      int d = base::dependence(g, i);
      if (communicates(shardwise::detail::transition_at(g, i))) {
        batch[i] = join(g, i, d);
        d = batch[i] + 1;
      } else if (!stands_between(g, i)) {
        opened = 0;
      }
      base::set_dependence(g, i, d);
    }

    // Whether it waits for the last one of its batch.
    constexpr bool precedes(int i) const { return batch[i] >= 0 && last_member[batch[i]] != i; }
    template <class F>
    constexpr void each(int i, F&& f) const {
      if (batch[i] < 0) return f(i);
      for (int j = first_member[batch[i]]; j >= 0; j = next_member[j]) f(j);
    }

    // Of a batch, when its last member is looked at: the others are held, and do not stand in their own way.
    constexpr bool ready(const In& g, int i) {
      if (precedes(i)) return false;
      each(i, [&](int j) {
        if (j != i) base::hold(g, j, -1);
      });
      bool all = true;
      each(i, [&](int j) {
        for (int k = 0; k < g.nodes[j].inputs; ++k) all = all && to[g.nodes[j].in[k]] >= 0;
        all = all && !base::conflicts(g, j);
      });
      each(i, [&](int j) {
        if (j != i) base::hold(g, j, 1);
      });
      return all;
    }
    constexpr void wait(const In& g, int i) {
      waiting[waits++] = i;
      base::hold(g, i, 1);
    }
    // A node, or the batch whose last member it is.
    constexpr void write(builder& b, const In& g, int i) {
      const bool several = batch[i] >= 0 && members[batch[i]] > 1;
      if (several) {
        ++numbers;
        int kept = 0;
        for (int k = 0; k < waits; ++k) {
          if (batch[waiting[k]] == batch[i]) base::hold(g, waiting[k], -1);
          else waiting[kept++] = waiting[k];
        }
        waits = kept;
      }
      each(i, [&](int j) {
        base::copy(b, g, j);
        if (g.nodes[j].op == op_code::redistribute && b.node_count <= b.node_capacity)
          set_batch(b.nodes[to[j]], several ? numbers : 0);
      });
    }

    constexpr void place(builder& b, const In& g, int i) {
      if (!ready(g, i)) return wait(g, i);
      write(b, g, i);
      for (bool again = waits > 0; again;) {
        again = false;
        const int n = waits;
        work.take(60 * n);
        for (int k = 0; k < n; ++k) base::hold(g, waiting[k], -1);
        waits = 0;
        for (int k = 0; k < n; ++k) {
          const int w = waiting[k];
          if (!ready(g, w)) {
            wait(g, w);
            continue;
          }
          write(b, g, w);
          again = waits > 0;
        }
      }
    }

    constexpr bool step(const In& g, builder& b) { return base::walk_on(*this, g, b); }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    return {g.node_count, g.spec_count};
  }
};

}  // namespace passes

// Neighbouring collectives on one axis, by one transition, of elements of one type and of one module are issued as one: the
// gathers of a fully sharded group's parameters, the scattered sums of its gradients. Neighbours have between them nothing but
// views, copies, scalings and other redistributions. Keeps every bit: no buffer is packed, and every element has the summands
// that it had, in their order. The price: what the members read and what they make is stored at once, for the time of all of them.
struct batch_collectives : passes::rewriting<passes::batch_rules> {
  using apply_after = passes_list<comm_fusion, merge_common, cancel_redistributions, recompute>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1

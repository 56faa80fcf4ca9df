// SPDX-License-Identifier: Apache-2.0
// join_casts: casts of parameters, and of a bucket's gradients, side by side, which GPUs run in one launch.
#pragma once

#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1 {

struct comm_fusion;

namespace passes {

struct cast_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::to, base::cursor;

    bool moved[capacity]{};       // up to `first`
    int last_reader[capacity]{};  // of a cast
    int first = -1, moves = 0;
    int bucket[capacity];        // of a cast that waits for its bucket: the first of that one's packs; -1: it does not wait
    int next_waiting[capacity];  // of a pack: the first cast that waits for it; of a cast: the next one; -1

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i) bucket[i] = next_waiting[i] = -1;
      if (!has_low_precision(g)) return;
      choose(g);
      choose_gradients(g);
    }

    // Casts to float whose one reader is a pack. Where a program writes tensors in place, all stay: an operand might change meanwhile.
    constexpr void choose_gradients(const In& g) {
      int readers[capacity]{}, count[capacity]{};
      for (int i = 0; i < g.node_count; ++i) {
        if (g.nodes[i].op == op_code::in_place) return;
        for (int k = 0; k < g.nodes[i].inputs; ++k) ++readers[g.nodes[i].in[k]];
      }
      for (int k = 0; k < g.output_count; ++k) ++readers[g.outputs[k]];
      int head[capacity]{};  // of a pack: the first of its chain
      for (int i = 0; i < g.node_count; ++i) {
        const node& n = g.nodes[i];
        if (n.op != op_code::pack) continue;
        const bool goes_on = i > 0 && g.nodes[i - 1].op == op_code::pack && n.in[0] == i - 1;
        head[i] = goes_on ? head[i - 1] : i;
        for (int k = 0; k < n.inputs; ++k)
          if (const int x = n.in[k]; widens(g, g.nodes[x]) && readers[x] == 1) {
            bucket[x] = head[i];
            ++count[head[i]];
          }
      }
      for (int i = g.node_count - 1; i >= 0; --i)
        if (const int at = bucket[i]; at >= 0 && count[at] > 1) {
          next_waiting[i] = next_waiting[at];
          next_waiting[at] = i;
        } else {
          bucket[i] = -1;
        }
    }

    // What may move: the first cast of a parameter, if no collective reads it, and nothing was written before.
    constexpr void choose(const In& g) {
      bool cast[capacity]{};  // by parameter
      int casts = 0, last = -1;
      for (int i = 0; i < g.node_count && !is_update(g.nodes[i].op); ++i) {
        if (!joins_casts(g, g.nodes[i]) || cast[g.nodes[i].in[0]]) continue;
        cast[g.nodes[i].in[0]] = moved[i] = true;
        last_reader[i] = -1;
        last = i;
        ++casts;
      }
      if (casts < 2) return forget(g);
      for (int i = 0; i < g.node_count; ++i)
        for (int k = 0; k < g.nodes[i].inputs; ++k) {
          const int x = g.nodes[i].in[k];
          if (!moved[x]) continue;
          last_reader[x] = i;
          if (communicates(shardwise::detail::transition_at(g, i))) moved[x] = false;
        }
      for (int k = 0; k < g.output_count; ++k) last_reader[g.outputs[k]] = g.node_count;
      for (int i = 0; i <= last; ++i) {
        if (!moved[i]) continue;
        moved[i] = (last_reader[i] > last || g.specs[g.nodes[i].spec].rank < 2) && (first < 0 || g.nodes[i].in[0] < first);
        if (moved[i] && first < 0) first = i;
        moves += moved[i] ? 1 : 0;
      }
    }
    constexpr void forget(const In& g) {
      for (int i = 0; i < g.node_count; ++i) moved[i] = false;
    }

    constexpr bool step(const In& g, builder& b) {
      if (cursor > g.node_count) return false;
      const int i = cursor++;
      if (i == g.node_count) {
        base::set_outputs(g);
        return false;
      }
      if (i == first) {
        base::work.take(12 * (g.node_count - i));
        for (int j = i; j < g.node_count && moves > 0; ++j)
          if (moved[j]) {
            base::copy(b, g, j);
            --moves;
          }
      }
      if (g.nodes[i].op == op_code::pack)
        for (int j = next_waiting[i]; j >= 0; j = next_waiting[j]) base::copy(b, g, j);
      if (!moved[i] && bucket[i] < 0) base::copy(b, g, i);
      return true;
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    return {g.node_count, g.spec_count};
  }
};

}  // namespace passes

// Casts of parameters to two bytes (mixed) stand side by side where the first of them stood, in their order: on GPUs one launch. Moved are
// those of matrices that are read behind the last of all such casts, as in a training step whose backward pass reads what its forward
// pass read, and of vectors. Those that are gathered (fully_shard), computed again (checkpoint) or dead before the last one stay where they
// are, so that what a forward pass holds at once does not grow with its layers. Keeps every bit. The price: moved copies live from the
// first cast on. They live at the last one in any case, with more activations beside them, so a training step's peak stays, but for how
// values fit into the arena.
// Gradients that are cast to float for their bucket (comm_fusion_in_place) are cast side by side in front of it: the collective would
// have waited for the last of them in any case. Until then they take two bytes an element besides, of one bucket at a time.
struct join_casts : passes::rewriting<passes::cast_rules> {
  using apply_after = passes_list<comm_fusion>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

}  // namespace shardwise::inline v0_1

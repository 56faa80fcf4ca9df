// SPDX-License-Identifier: Apache-2.0
// Iterations: parts of a step that run at the beginning of the next one; the step as setup, main and cleanup graphs.
#pragma once

#include <shardwise/graph/text/text.hpp>
#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/iteration/iteration_moves.hpp>
#include <shardwise/propagation/fill.hpp>

namespace shardwise::inline v0_1 {

// The first iteration leaves out what is moved and keeps what it reads of this iteration. Every further one does the
// previous one's moved part before its destination. The last one does that and its own part where it stood. So two
// iterations at least. Law: setup, k times main, cleanup leave what k + 2 unmoved iterations do, bit by bit.
enum class iteration_phase : std::uint8_t { setup, main, cleanup };

namespace passes {

// One of the three graphs. Leaves come first, in their order, then what is kept from one iteration to the next, then the
// packs of leaves: so leaves lie at the same offsets in all three.
template <iteration_phase Phase>
struct phase_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::out, base::to, base::cursor, base::work;
    static constexpr int step_cost = 30;
    static constexpr bool early = Phase != iteration_phase::setup;    // does the previous iteration's part
    static constexpr bool keeps = Phase != iteration_phase::cleanup;  // and leaves its own to the next one

    iteration_moves<In::node_capacity> moves;
    storage_map<capacity> storage;
    int moved_to[capacity];          // the node of the previous iteration's part
    int kept[capacity];              // where the next iteration finds a value; -1: it is not kept
    bool early_storage[capacity]{};  // by owner: something is written there before the last destination
    int keeps_count = 0;

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i) moved_to[i] = kept[i] = -1;
    }
    // Once `moves` is set.
    constexpr void settle(const In& g) {
      if (moves.error) out.error = moves.error;
      int last = 0;
      for (int k = 1; k <= moves.count; ++k) last = moves.destination[k] > last ? moves.destination[k] : last;
      for (int i = 0; i < g.node_count; ++i) {
        if (i < last && has_place(g, i)) early_storage[storage.owner[i]] = true;
        if (moves.group[i] == 0) continue;
        for (int k = 0; k < g.nodes[i].inputs; ++k) {
          const int x = g.nodes[i].in[k];
          // what was computed where a leaf lies is not, once the node that says so has moved
          const bool placed = g.nodes[i].op == op_code::in_place && k == 1;
          if (moves.group[x] == 0 && (placed || !names_leaves(g, storage.owner[x]))) kept[x] = -2;
        }
      }
    }

    constexpr void keep_leaves(builder& b, const In& g) {
      int index = 0;
      for (int i = 0; i < g.node_count; ++i)
        if (g.nodes[i].op == op_code::state)
          if (const std::int64_t taken = attributes_of<leaf_attributes>(g.nodes[i].a).index; taken >= index)
            index = static_cast<int>(taken) + 1;
      for (int i = 0; i < g.node_count; ++i) {
        if (kept[i] != -2) continue;
        node n = empty_node;
        n.op = op_code::state;
        n.a = pack_attributes(leaf_attributes{.index = index++, .parameter = -1, .which = kept_value});
        n.scope = g.nodes[i].scope;
        n.spec = b.intern(contiguous(g.spec_of(i)));
        kept[i] = b.append(n);
        ++keeps_count;
      }
    }
    constexpr void store_kept(builder& b, const In& g) {
      int kept_in[capacity]{};  // by owner
      for (int i = 0; i < g.node_count; ++i) kept_in[storage.owner[i]] += kept[i] >= 0 ? 1 : 0;
      for (int i = 0; i < g.node_count; ++i) {
        if (kept[i] < 0) continue;
        node n = empty_node;
        const int root = storage.owner[i];
        const bool own = root == i ? has_storage(g, i) || g.nodes[i].op == op_code::pack : g.nodes[i].op == op_code::pack;
        // where the value can be computed in the place that is kept, after its last reader, it is
        n.op = own && !early_storage[root] && !names_leaves(g, root) && kept_in[root] == 1 ? op_code::in_place
                                                                                           : op_code::assign;
        n.inputs = 2;
        n.in[0] = kept[i];
        n.in[1] = to[i];
        if (!is_contiguous(g.spec_of(i))) n.in[1] = emit_one(b, op_code::contiguous, n.in[1], b.nodes[kept[i]].spec);
        n.scope = g.nodes[i].scope;
        n.spec = b.nodes[kept[i]].spec;
        b.append(n);
      }
    }
    // What stands for node x before the destination: leaves themselves, the previous iteration's values where they are kept.
    constexpr int before(builder& b, const In& g, int x) {
      if (moved_to[x] >= 0) return moved_to[x];
      if (kept[x] >= 0) return kept[x];
      if (names_leaves(g, x)) return to[x];
      if (has_storage(g, x)) return to[storage.owner[x]];  // computed where a leaf lies
      const node& n = g.nodes[x];
      const int source = before(b, g, n.in[0]);
      if (is_update(n.op)) return source;
      node view = n;
      view.in[0] = source;
      return b.append(view);
    }
    constexpr void write_moved(builder& b, const In& g, int i) {
      work.take(40);
      node n = g.nodes[i];
      if (n.op == op_code::wait && moved_to[n.in[0]] < 0) {  // what it waits for has come, and is kept
        moved_to[i] = before(b, g, n.in[0]);
        return;
      }
      if (n.op == op_code::in_place && moved_to[n.in[1]] < 0) n.op = op_code::assign;  // the value lies where it is kept
      const int first = n.op == op_code::pack && attributes_of<storage_attributes>(n.a).goes_on != 0 ? 1 : 0;
      for (int k = 0; k < n.inputs; ++k) {
        bool moved = moved_to[n.in[k]] >= 0;
        n.in[k] = before(b, g, n.in[k]);
        moved = moved && !is_leaf(b.nodes[n.in[k]].op);
        if (n.op == op_code::pack && k >= first && !moved)
          n.in[k] = emit_one(b, op_code::contiguous, n.in[k], b.nodes[n.in[k]].spec);
      }
      moved_to[i] = b.append(n);
    }

    constexpr bool step(const In& g, builder& b) {
      const int n = g.node_count;
      if (b.error || cursor > 3 * n) return false;
      const int at = cursor++;
      if (at < n) {
        if (is_leaf(g.nodes[at].op)) base::copy(b, g, at);
        if (at == n - 1) {
          work.take(8 * n);
          keep_leaves(b, g);
        }
      } else if (at < 2 * n) {
        if (places_leaves(g.nodes[at - n])) base::copy(b, g, at - n);
      } else if (at < 3 * n) {
        const int i = at - 2 * n;
        if (early)
          for (int k = 1; k <= moves.count; ++k)
            if (moves.destination[k] == i) {
              work.take(5 * n);
              for (int j = 0; j < n; ++j)
                if (moves.group[j] == k) write_moved(b, g, j);
            }
        if (!names_leaves(g, i) && !is_leaf(g.nodes[i].op) && (moves.group[i] == 0 || !keeps)) base::copy(b, g, i);
      } else {
        if (keeps) store_kept(b, g);
        base::set_outputs(g);
        if (!b.overflowed()) number_batches(b);  // what has moved is in its batch no longer
      }
      return at < 3 * n;
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    return {3 * g.node_count + 64, g.spec_count + 64};
  }
};

}  // namespace passes

// A graph made at run time with its moves; constants have iterated_graph.
template <class Graph>
struct iteration_module {
  Graph g;
  iteration_moves<Graph::node_capacity> moves{};

  template <class Set>
  constexpr finding move_to_next_iter_before(const Set& set, int destination) {
    return passes::add_move(g, moves, set, destination);
  }
  constexpr void finalize() { moves.frozen = true; }
  // How many values one iteration keeps for the next.
  constexpr int kept_values() const {
    passes::phase_rules<iteration_phase::setup>::state<Graph, Graph> st;
    passes::begin_rewriting(st, g);
    st.moves = moves;
    st.settle(g);
    int n = 0;
    for (int i = 0; i < g.node_count; ++i) n += st.kept[i] == -2 ? 1 : 0;
    return n;
  }
  // A finding if it does not fit the capacity of `to`.
  template <iteration_phase Phase>
  constexpr finding phase(Graph& to) const {
    typename passes::phase_rules<Phase>::template state<
        Graph, resized<Graph, 3 * Graph::node_capacity + 64, 2 * Graph::spec_capacity + 64>>
        st;
    passes::begin_rewriting(st, g);
    st.moves = moves;
    st.settle(g);
    passes::write_on(st, g, stage_work::all());
    if (st.out.error) return st.out.error;
    passes::remove_dead(st.out);
    if (st.out.node_count > Graph::node_capacity || st.out.spec_count > Graph::spec_capacity)
      return {problem::graph_full, -1, -1, -1, st.out.node_count, Graph::node_capacity};
    copy_into(to, st.out);
    return {};
  }
};

namespace passes {
// One phase of a constant graph; Moves::value are its moves.
template <class Moves, iteration_phase Phase>
struct moved_phase : phase_rules<Phase> {
  // What is moved is written twice at most, with a copy of each operand and of the views that it is; what is kept, with the
  // node that stores it.
  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    const auto& moves = Moves::value;
    int more = 64;
    for (int i = 0; i < g.node_count; ++i) {
      if (moves.group[i] == 0) continue;
      ++more;
      for (int k = 0; k < g.nodes[i].inputs; ++k) {
        int x = g.nodes[i].in[k];
        if (moves.group[x] != 0) continue;
        for (more += 5; g.nodes[x].inputs > 0 && (is_update(g.nodes[x].op) || may_view(g.nodes[x].op)); x = g.nodes[x].in[0])
          ++more;
      }
    }
    return {g.node_count + more, g.spec_count + 64};
  }
  template <class In, class Out>
  struct state : phase_rules<Phase>::template state<In, Out> {
    using base = typename phase_rules<Phase>::template state<In, Out>;
    constexpr void begin(const In& g) {
      base::begin(g);
      base::moves = Moves::value;
      base::settle(g);
    }
  };
};
}  // namespace passes

template <class Source, class Moves, iteration_phase Phase>
using iterated_graph = typename passes::rewriting<passes::moved_phase<Moves, Phase>>::template run<Source>;

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// iter_move_grads_and_optimizers: a bucket's collective and the updates that wait for it run in the next iteration.
#pragma once

#include <shardwise/pass/iteration/iteration.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

// The key of the pass that schedules waits, if there is one in the pipeline: moves come after it.
struct comm_wait_schedule;

namespace passes {

// Whether gradient x of a block is (a slot, a copy or the wait of) the result of collective `comm`.
template <class Graph>
constexpr bool comes_from(const Graph& g, int x, int comm) {
  for (int level = 0; level < search_levels; ++level) {
    if (x == comm) return true;
    const op_code op = g.nodes[x].op;
    if (op != op_code::unpack && op != op_code::contiguous && op != op_code::redistribute && op != op_code::wait)
      return false;
    x = g.nodes[x].in[0];
  }
  return false;
}

struct comm_block {
  int comm = -1, update = -1;
  int gradients = 0, of_comm = 0;  // of the update's list
  finding error{};
};

// The collective of that name and the fused update that reads its result.
template <class Graph>
constexpr comm_block find_comm_block(const Graph& g, const char* name) {
  comm_block r;
  r.comm = find_node(g, name);
  if (r.comm < 0 || !communicates(shardwise::detail::transition_at(g, r.comm))) {
    r.error = {problem::comm_unknown, r.comm};
    return r;
  }
  for (int i = r.comm; i < g.node_count; ++i) {
    const optimizer_block b = block_at(g, i);
    if (!b.fused) continue;
    int all = 0, own = 0;
    each_packed(g, b.gradients, [&](int x, std::int64_t) {
      ++all;
      own += comes_from(g, x, r.comm) ? 1 : 0;
    });
    if (own == 0) continue;
    r.update = i;
    r.gradients = all;
    r.of_comm = own;
    if (b.step < 0) r.error = {problem::optim_step_missing, i};
    return r;
  }
  r.error = {problem::comm_unused, r.comm};
  return r;
}

// Splits the update by the collective's gradients; one that has no others stays.
template <class Name>
struct split_by_comm : split_rules {
  template <class In, class Out>
  struct state : split_rules::template state<In, Out> {
    using base = split_rules::template state<In, Out>;
    constexpr void begin(const In& g) { begin(g, Name::text()); }
    constexpr void begin(const In& g, const char* name) {
      base::begin(g);
      const comm_block c = find_comm_block(g, name);
      if (c.error) base::out.error = c.error;
      if (c.error || c.gradients == c.of_comm) return;
      each_packed(g, block_at(g, c.update).gradients,
                  [&](int x, std::int64_t) { base::chosen[x] = base::chosen[x] || comes_from(g, x, c.comm); });
      base::choose(g, c.update, c.of_comm);
    }
  };
};

// The collective, the step of its updates, and all that depends on them.
template <class Graph>
constexpr move_request comm_block_request(const Graph& g, const char* comm, const char* before) {
  move_request r;
  const comm_block c = find_comm_block(g, comm);
  r.error = c.error;
  if (c.error) return r;
  r.roots[r.count++] = c.comm;
  r.roots[r.count++] = block_at(g, c.update).step;
  r.destination = find_node(g, before);
  return r;
}

// Splits a graph made at run time, then moves.
template <class Graph>
constexpr finding move_comm_block(iteration_module<Graph>& m, const char* comm, const char* before) {
  if (m.moves.frozen || m.moves.count != 0) return {problem::move_frozen};  // node ids change
  struct nameless {
    static constexpr const char* text() { return ""; }
  };
  using wide = resized<Graph, 3 * Graph::node_capacity + 64, 2 * Graph::spec_capacity + 64>;
  typename split_by_comm<nameless>::template state<Graph, wide> st;
  st.begin(m.g, comm);
  write_on(st, m.g, stage_work::all());
  if (st.out.error) return st.out.error;
  remove_dead(st.out);
  if (st.out.node_count > Graph::node_capacity || st.out.spec_count > Graph::spec_capacity)
    return {problem::graph_full, -1, -1, -1, st.out.node_count, Graph::node_capacity};
  Graph next;
  copy_into(next, st.out);
  if (const finding f = add_move(next, m.moves, comm_block_request(next, comm, before))) return f;
  m.g = next;
  return {};
}

template <fixed_string Text>
struct name_text {
  static constexpr auto stored = Text;
  static constexpr const char* text() { return stored.text; }
};

}  // namespace passes

// What runs in the next iteration. A move is a pass over the graph (here: none) and request(graph) -> move_request.
// The nodes named and everything that depends on them, before the node Before.
template <fixed_string Before, fixed_string... Nodes>
struct move_descendants {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr const auto& value = Source::value;
  };
  template <class Graph>
  static constexpr passes::move_request request(const Graph& g) {
    const char* const names[] = {passes::name_text<Before>::text(), passes::name_text<Nodes>::text()...};
    constexpr int count = static_cast<int>(sizeof...(Nodes));
    passes::move_request r;
    if (count > passes::max_roots) {
      r.error = {problem::move_count, -1, -1, -1, count, passes::max_roots};
      return r;
    }
    int found[count + 1]{};
    find_nodes(g, names, count + 1, found);
    r.destination = found[0];
    for (int k = 1; k <= count; ++k) r.roots[r.count++] = found[k];
    return r;
  }
};

template <fixed_string Comm>
struct iter_move_of;

// The collective Comm (a name of the graph's text: all_reduce_1) and the part of the fused update that reads its result,
// split off, run in the next iteration before node Before.
template <fixed_string Comm, fixed_string Before>
struct iter_move_grads_and_optimizers : passes::rewriting<passes::split_by_comm<passes::name_text<Comm>>> {
  using key = iter_move_of<Comm>;  // each collective moves once
  using prerequisites = passes_list<remove_copy_from_optimizer>;
  using apply_after = passes_list<comm_wait_schedule>;
  template <class Graph>
  static constexpr passes::move_request request(const Graph& g) {
    return passes::comm_block_request(g, passes::name_text<Comm>::text(), passes::name_text<Before>::text());
  }
};

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// What of a step moves into the next iteration, and what may: groups of nodes, each before a node of its own.
#pragma once

#include <shardwise/pass/analysis/descendants.hpp>
#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1 {

inline constexpr int max_moves = 8;

// Which nodes of a graph run in the next iteration, and before which node.
template <int Nodes>
struct iteration_moves {
  signed char group[Nodes > 0 ? Nodes : 1]{};  // 0: not moved
  int destination[max_moves + 1]{};
  int count = 0;
  bool frozen = false;
  finding error{};
};

namespace passes {

// Nothing but a name for leaves' storage: it may stand anywhere after them.
template <class Graph>
constexpr bool names_leaves(const Graph& g, int i) {
  return is_variable_leaf(g.nodes[i].op) || places_leaves(g.nodes[i]);
}

// Storage that the caller writes, or that lasts. Of an input moved nodes read a copy, made at the end of their own iteration.
template <class Graph>
constexpr bool belongs_to_caller(const Graph& g, int i) {
  return names_leaves(g, i) || g.nodes[i].op == op_code::input;
}

// What is to move: the descendants of `roots`, before `destination`.
inline constexpr int max_roots = 16;
struct move_request {
  int roots[max_roots]{};
  int count = 0;
  int destination = -1;
  finding error{};
};

// Adds a group to `moves`, or says why not. What is written through leaves and packs of leaves must be seen by the same
// readers after the move as before: a node that stays and meets a moved one in storage that one of them writes may
// neither come before the destination nor after the moved one; moved groups may not meet at all, and a destination comes
// before what is moved. Nor may a moved node write an input, or read one that is written after it. (Everything else is kept
// for the next iteration.) In parts, each of some steps of evaluation a node, so that constants can be made of them.
template <int Nodes>
struct move_check {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;

  storage_map<Nodes> storage;                           // of the graph
  bool in[capacity]{};                                  // the set
  int first_write[capacity]{}, first_read[capacity]{};  // by owner: the first moved node, plus one
  int destination = -1;
  int part = 0, cursor = 0;
  finding error{};

  static constexpr int compared_at_once = 4096;  // nodes: the dearest part

  // false: there is no part left.
  template <class Graph>
  constexpr bool next(const Graph& g, iteration_moves<Nodes>& moves) {
    if (error) return false;
    switch (part++) {
      case 0: error = admit(g, moves); return true;
      case 1: error = close(g); return true;
      case 2: error = note(g); return true;
      case 3:
        error = compare(g, moves);
        if (!error && cursor < g.node_count) --part;
        return true;
      case 4: move(g, moves); return false;
      default: return false;
    }
  }

 private:
  template <class Graph>
  constexpr finding admit(const Graph& g, const iteration_moves<Nodes>& moves) {
    if (moves.frozen) return {problem::move_frozen, destination};
    if (moves.count == max_moves) return {problem::move_count, destination, -1, -1, moves.count + 1, max_moves};
    if (destination < 0 || destination >= g.node_count || is_leaf(g.nodes[destination].op) || moves.group[destination] != 0)
      return {problem::move_destination, destination};
    for (int i = 0; i < g.node_count; ++i) {
      if (!in[i]) continue;
      const node& n = g.nodes[i];
      if (places_leaves(n)) {
        in[i] = false;  // stays: it does nothing
        continue;
      }
      if (n.op == op_code::part && !in[n.in[1]]) {
        in[i] = false;  // stays with its writer, and is kept
        continue;
      }
      if (n.op == op_code::getitem && !in[n.in[0]]) {
        in[i] = false;  // the same
        continue;
      }
      if (is_leaf(n.op) || moves.group[i] != 0 || i == destination) return {problem::move_not_leaf, i};
      if (rules::is_random(n.op) || reads_step_number(n.op, n.a)) return {problem::move_numbered, i};
    }
    return {};
  }
  template <class Graph>
  constexpr finding close(const Graph& g) {
    for (int i = g.node_count - 1; i >= 0; --i)  // a list moves as a whole
      if (in[i] && g.nodes[i].op == op_code::pack && attributes_of<storage_attributes>(g.nodes[i].a).goes_on != 0)
        in[g.nodes[i].in[0]] = true;
    for (int i = g.node_count - 1; i >= 0; --i)  // what a kernel stores besides its result goes with it
      for (int k = 0; in[i] && k < g.nodes[i].inputs; ++k)
        if (g.nodes[g.nodes[i].in[k]].op == op_code::room) in[g.nodes[i].in[k]] = true;
    for (int i = 0; i < g.node_count; ++i) {
      if (in[i]) continue;
      for (int k = 0; k < g.nodes[i].inputs; ++k)
        if (in[g.nodes[i].in[k]]) return {problem::move_not_leaf, g.nodes[i].in[k]};
    }
    for (int k = 0; k < g.output_count; ++k)
      if (in[g.outputs[k]]) return {problem::move_user_output, g.outputs[k]};
    return {};
  }
  template <class Graph, class F>
  constexpr void each_access(const Graph& g, int i, F&& f) const {
    const node& n = g.nodes[i];
    if (n.op == op_code::pack) return;
    for (int k = 0; k < n.inputs; ++k) f(storage.owner[n.in[k]], writes_operand(n, k));
    if (storage.owner[i] != i && has_place(g, i)) f(storage.owner[i], true);
  }
  template <class Graph>
  constexpr finding note(const Graph& g) {
    for (int i = 0; i < g.node_count; ++i) {
      if (!in[i]) continue;
      if (i < destination && g.nodes[i].op != op_code::room)
        return {problem::move_hazard, i, -1, -1, i, destination};  // its own next run would overtake it
      bool overwrites = false;                                     // the next iteration's input
      each_access(g, i, [&](int owner, bool writes) {
        int& first = (writes ? first_write : first_read)[owner];
        if (first == 0 && belongs_to_caller(g, owner)) first = i + 1;
        overwrites = overwrites || (writes && g.nodes[owner].op == op_code::input);
      });
      if (overwrites) return {problem::move_hazard, i, -1, -1, i, destination};
    }
    return {};
  }
  template <class Graph>
  constexpr finding compare(const Graph& g, const iteration_moves<Nodes>& moves) {
    const int end = cursor + compared_at_once < g.node_count ? cursor + compared_at_once : g.node_count;
    for (; cursor < end; ++cursor) {
      const int i = cursor;
      if (in[i]) continue;
      int wrong = -1;
      each_access(g, i, [&](int owner, bool writes) {
        const int w = first_write[owner], r = writes ? first_read[owner] : 0;
        const bool apart = i >= destination && moves.group[i] == 0;
        if ((w > 0 && (!apart || i >= w)) || (r > 0 && (!apart || i >= r))) wrong = owner;
      });
      if (wrong >= 0) return {problem::move_hazard, i, -1, -1, wrong, destination};
    }
    return {};
  }
  template <class Graph>
  constexpr void move(const Graph& g, iteration_moves<Nodes>& moves) const {
    ++moves.count;
    for (int i = 0; i < g.node_count; ++i)
      if (in[i]) moves.group[i] = static_cast<signed char>(moves.count);
    moves.destination[moves.count] = destination;
  }
};

template <class Graph, class Set>
constexpr finding add_move(const Graph& g, iteration_moves<Graph::node_capacity>& moves, const Set& set, int destination) {
  move_check<Graph::node_capacity> check;
  check.destination = destination;
  find_storage(g, check.storage);
  for (const int i : set) check.in[i] = true;
  while (check.next(g, moves)) {
  }
  return check.error;
}
template <class Graph>
constexpr finding add_move(const Graph& g, iteration_moves<Graph::node_capacity>& moves, const move_request& r) {
  if (r.error) return r.error;
  const auto set = find_all_descendants(g, r.roots, r.count);
  return set.error ? set.error : add_move(g, moves, set, r.destination);
}

// The same of a constant graph: Before::value are the moves so far, Move::request(graph) is what is to move.
template <class Before, class Move>
struct mark_staged {
  template <int Nodes>
  struct progress {
    iteration_moves<Nodes> moves;
    move_check<Nodes> check;
    bool asked = false;
  };
  template <class Source>
  using state = progress<graph_type_of<Source>::node_capacity>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.moves = Before::value;
    copy_storage(found_storage<Source>, st.check.storage, Source::value.node_count);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return some(st, Source::value, stage_work(nodes));
  }
  template <class State, class Graph>
  static constexpr bool some(State& st, const Graph& g, stage_work work) {
    if (st.moves.error) return false;
    if (!st.asked) {
      st.asked = true;
      if (st.moves.frozen) {
        st.moves.error = {problem::move_frozen};
        return false;
      }
      const move_request r = Move::request(g);
      st.moves.error = r.error ? r.error : mark_descendants(g, r.roots, r.count, st.check.in);
      st.check.destination = r.destination;
      return !st.moves.error;
    }
    for (bool more = true; more && work.take(25 * g.node_count);) {
      more = st.check.next(g, st.moves);
      st.moves.error = st.check.error;
      if (!more) return false;
    }
    return true;
  }
};

}  // namespace passes

}  // namespace shardwise::inline v0_1

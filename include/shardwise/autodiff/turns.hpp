// SPDX-License-Identifier: Apache-2.0
// grad_in_turns, in_turns: the joint graph of a program that takes its batch in pieces (module/accumulate.hpp): of each piece
// the forward and the backward pass, one piece after the other.
#pragma once

#include <shardwise/autodiff/grad.hpp>

namespace shardwise::inline v0_1::autodiff {

// A piece's turn is its forward and its backward pass. Every forward node is of one turn, or shared: what depends on a piece's
// rows is of the latest such turn (a buffer goes from turn to turn), and what depends on none is of the turn that alone reads it.
// Leaves, parameters that a group gathers, and whatever else several turns read is shared.
inline constexpr std::int32_t shared = -1;

// `turn` of each forward node, and `place`: the turn in which it is computed, of what is shared the first that reads it.
// Law: a node reads what has an earlier place, or the same and stands before it.
template <int Forward>
struct turn_marks {
  std::int32_t turn[Forward > 0 ? Forward : 1];
  std::int32_t place[Forward > 0 ? Forward : 1];
  unsigned char total[Forward > 0 ? Forward : 1];  // of the mean of the losses

  template <class Source, class Graph>
  constexpr void find(const Graph& g, int pieces) {
    by_rows<Source>(g);
    by_readers(g);
    for (auto& t : total) t = 0;
    int i = root_of<Source>(g);  // the losses' sum divided: the last of its additions
    for (int k = 0; k < pieces && g.nodes[i].inputs > 0; ++k) {
      total[i] = 1;
      i = g.nodes[i].in[0];
    }
  }

 private:
  // An input that is cut is read by nothing but slices, behind views: piece k begins at k times its length.
  template <class Source, class Graph>
  constexpr void by_rows(const Graph& g) {
    bool uncut[Forward > 0 ? Forward : 1]{};
    for (int i = 0; i < g.node_count; ++i) {
      const node& x = g.nodes[i];
      turn[i] = shared;
      if (x.op == op_code::input)
        uncut[i] = !Source::accumulation::whole::holds(static_cast<int>(attributes_of<leaf_attributes>(x.a).index));
      if (x.inputs > 0 && uncut[x.in[0]]) {
        if (x.op == op_code::slice) {
          const auto of = attributes_of<slice_attributes>(x.a);
          turn[i] = static_cast<std::int32_t>(of.start / of.length);
        } else {
          uncut[i] = may_view(x.op);
        }
        continue;
      }
      for (int k = 0; k < x.inputs; ++k)
        if (turn[x.in[k]] > turn[i]) turn[i] = turn[x.in[k]];
    }
  }
  template <class Graph>
  constexpr void by_readers(const Graph& g) {
    constexpr std::int32_t unread = -2;
    std::int32_t reader[Forward > 0 ? Forward : 1]{};  // its turn, shared: several
    for (int i = 0; i < g.node_count; ++i) reader[i] = place[i] = unread;
    for (int i = g.node_count - 1; i >= 0; --i) {
      const node& x = g.nodes[i];
      if (turn[i] == shared && !is_leaf(x.op) && reader[i] >= 0) turn[i] = reader[i];
      if (turn[i] != shared) place[i] = turn[i];
      else if (place[i] == unread) place[i] = 0;
      for (int k = 0; k < x.inputs; ++k) {
        const int v = x.in[k];
        reader[v] = reader[v] == unread || reader[v] == turn[i] ? turn[i] : shared;
        if (place[v] == unread || place[i] < place[v]) place[v] = place[i];
      }
    }
  }
};

template <class Base, int Forward, int Pieces>
struct turn_state : Base {
  turn_marks<Forward> marks;
  std::int32_t order[Forward > 0 ? Forward : 1];  // in which forward nodes are pulled
  std::int32_t end[Pieces + 2];  // nodes of the joint graph behind the mean's pullbacks, those of each turn, the rest
};

// The reverse sweep, turn by turn: the mean of the losses, the first turn's nodes from the last to the first, the second's, and
// so on, and what is shared at the end. Law: cotangents are those of grad, the turns' contributions added in the order of the
// turns; so what is shared, such as a parameter's gather, is pulled once, with the sum of all turns.
//
// No gradient flows from one turn to another: what is written into a buffer and read again is none of a gradient's (buffer_gradient).
template <int Pieces>
struct grad_in_turns : grad {
  template <class Source>
  using state = turn_state<grad::state<Source>, grad::forward<Source>, Pieces>;

  template <class Source, class State>
  static constexpr void start(State& st) {
    grad::start<Source>(st);
    st.marks.template find<Source>(Source::value, Pieces);
    st.cursor = 0;
    const int n = Source::value.node_count;
    int k = 0;
    for (int group = 0; group < Pieces + 2; ++group) {
      st.end[group] = st.g.node_count;
      for (int i = n - 1; i >= 0; --i)
        if (group_of(st, i) == group) st.order[k++] = i;
    }
  }

  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    auto t = open(st);
    for (const int n = Source::value.node_count; nodes > 0 && st.cursor < n; --nodes) {
      const int i = st.order[st.cursor++];
      if (st.needs[i] && st.cotangent[i] >= 0) {
        pull(t, i);
        if (t.b.error) shardwise::detail::place_error(t.b.error, t.b, i);
      }
      for (int group = group_of(st, i); group < Pieces + 2; ++group) st.end[group] = t.b.node_count;
    }
    st.g.finish(t.b);
  }

 private:
  template <class State>
  static constexpr int group_of(const State& st, int i) {
    return st.marks.total[i] ? 0 : st.marks.turn[i] == shared ? Pieces + 1 : st.marks.turn[i] + 1;
  }
};

// Source: that sweep. The same nodes with each turn's backward pass behind its forward pass, so that what a turn keeps is gone
// before the next one begins. Parameters that their group frees (unsharding::freed) are gathered anew for each turn that reads
// them, side by side as in the first. Scopes say the turn (scope::turn), so that passes leave the turns' nodes apart.
template <int Pieces>
struct in_turns {
  // Places: leaves, the pullbacks of the mean, forward and backward pass of each turn, the rest of the sweep, writes to leaves.
  static constexpr int places = 2 * Pieces + 4;

  template <class Graph, int Forward>
  struct ordered {
    static constexpr int forward = Forward;
    static constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
    Graph g{typename Graph::unfilled{}};
    int cotangent[Forward > 0 ? Forward : 1];
    std::int32_t order[capacity];
    std::int32_t to[capacity];
    std::int32_t copy[Forward > 0 ? Forward : 1];    // of a gather: the last turn's,
    std::int32_t copied[Forward > 0 ? Forward : 1];  // and which turn that is
    std::int32_t scope_of[Graph::scope_capacity];    // of a module's scope: the last turn's,
    std::int32_t scope_in[Graph::scope_capacity];    // and which turn that is
    int cursor;
  };

  // Whether each turn has a node i of its own: it gathers a parameter that its group frees, or sees what such a node has gathered,
  // as over a second axis of one rank.
  template <class Graph>
  static constexpr bool is_of_turns(const Graph& g, int i) {
    const auto frees = [&](int k) { return unsharding_of(g.nodes[k]) == unsharding::freed; };
    return gathers_freed(g, i) || (frees(i) && frees(g.nodes[i].in[0]));
  }
  template <class Graph>
  static constexpr int freed_in(const Graph& g, int nodes) {
    int n = 0;
    for (int i = 0; i < nodes; ++i) n += is_of_turns(g, i) ? 1 : 0;
    return n;
  }

  template <class Source>
  static constexpr int forward = static_cast<int>(sizeof(Source::value.cotangent) / sizeof(int));
  template <class Source>
  static constexpr int more = (Pieces - 1) * freed_in(Source::value.g, forward<Source>);
  template <class Source>
  using joint = std::remove_cvref_t<decltype(Source::value.g)>;
  template <class Source>
  using state = ordered<resized<joint<Source>, Source::value.g.node_count + more<Source>, joint<Source>::spec_capacity,
                                Pieces * joint<Source>::scope_capacity + more<Source>>,
                        forward<Source>>;

  template <class Source>
  static constexpr int stages(int nodes) {
    return Source::value.g.node_count / nodes + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    begin(st, Source::value.g);
    const auto& from = Source::value;
    const int n = from.g.node_count;
    std::int32_t at[places + 1]{};
    for (int i = 0; i < n; ++i) ++at[place_of<State::forward>(from, i) + 1];
    for (int p = 0; p < places; ++p) at[p + 1] += at[p];
    for (int i = 0; i < n; ++i) st.order[at[place_of<State::forward>(from, i)]++] = i;
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    const auto& from = Source::value;
    const int n = from.g.node_count;
    if (st.cursor > n) return;
    for (; nodes > 0 && st.cursor < n; --nodes) write(st, from, st.order[st.cursor++]);
    if (st.cursor < n || nodes == 0) return;
    ++st.cursor;
    copy_outputs(st.g, from.g, st.to);
    // parameters, as leaves, are first
    for (int i = 0; i < State::forward; ++i)
      if (is_leaf(from.g.nodes[i].op) && from.cotangent[i] >= 0) st.cotangent[st.to[i]] = st.to[from.cotangent[i]];
  }

 private:
  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g) {
    begin_anew(st.g, g);
    for (int i = 0; i < State::forward; ++i) st.cotangent[i] = st.copy[i] = st.copied[i] = -1;
    for (auto& i : st.to) i = -1;
    for (auto& i : st.order) i = -1;
    for (auto& s : st.scope_of) s = -1;
    for (auto& s : st.scope_in) s = 0;
    st.cursor = 0;
  }

  template <int Forward, class Sweep>
  static constexpr int place_of(const Sweep& from, int i) {
    if (i >= Forward) {
      if (i < from.end[0]) return 1;
      int turn = 0;
      while (turn < Pieces && i >= from.end[turn + 1]) ++turn;
      return 3 + 2 * turn - (turn == Pieces ? 1 : 0);
    }
    const op_code op = from.g.nodes[i].op;
    return is_leaf(op) ? 0 : op == op_code::assign ? places - 1 : 2 + 2 * from.marks.place[i];
  }

  template <class State, class Sweep>
  static constexpr void write(State& st, const Sweep& from, int i) {
    const int place = place_of<State::forward>(from, i), turn = (place - 2) / 2;
    const bool in_turn = place >= 2 && turn < Pieces;
    node n = from.g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) {
      const int v = n.in[k];
      const bool anew = in_turn && v < State::forward && from.marks.place[v] < turn && is_of_turns(from.g, v);
      n.in[k] = anew ? gathered(st, from, v, turn) : st.to[v];
    }
    if (in_turn && turn > 0) n.scope = scope_in_turn(st, n.scope, turn);
    st.to[i] = append(st, n);
  }

  // A checkpointed call has scopes of its own.
  template <class State>
  static constexpr int scope_in_turn(State& st, int s, int turn) {
    if (s < 0) return s;
    if (st.g.scopes[s].region >= 0 || st.g.scopes[s].checkpoint != nullptr) {
      st.g.scopes[s].turn = turn;
      return s;
    }
    if (st.scope_in[s] != turn) {
      st.scope_in[s] = turn;
      st.scope_of[s] = new_scope(st, s, turn);
    }
    return st.scope_of[s];
  }
  template <class State>
  static constexpr int new_scope(State& st, int s, int turn) {
    const auto& own = st.g.scopes[s];
    st.g.scopes[st.g.scope_count] = {own.name, own.index, own.parent, -1, -1, nullptr, turn};
    return st.g.scope_count++;
  }

  template <class State, class Sweep>
  static constexpr int gathered(State& st, const Sweep& from, int v, int turn) {
    if (st.copied[v] == turn) return st.copy[v];
    const auto beside = [&](int k) {
      return k >= 0 && k < State::forward && from.g.nodes[k].scope == from.g.nodes[v].scope && is_of_turns(from.g, k);
    };
    const int scope = new_scope(st, from.g.nodes[v].scope, turn);
    int k = v;
    while (beside(k - 1)) --k;
    for (; beside(k); ++k) {
      node n = from.g.nodes[k];
      const int from_in = n.in[0];  // over two axes: what this turn has gathered over the first
      n.in[0] = st.copied[from_in] == turn ? st.copy[from_in] : st.to[from_in];
      n.scope = scope;
      st.copy[k] = append(st, n);
      st.copied[k] = turn;
    }
    return st.copy[v];
  }

  template <class State>
  static constexpr int append(State& st, const node& n) {
    st.g.nodes[st.g.node_count] = n;
    return st.g.node_count++;
  }
};

}  // namespace shardwise::inline v0_1::autodiff

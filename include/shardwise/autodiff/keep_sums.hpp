// SPDX-License-Identifier: Apache-2.0
// keep_sums: the joint graph of a program that adds its gradients to those of the runs before (module/keep_gradients.hpp).
#pragma once

#include <shardwise/autodiff/grad.hpp>
#include <shardwise/graph/kept_gradients.hpp>

namespace shardwise::inline v0_1::autodiff {

// Source: a joint graph. Each parameter's gradient is added to a state that holds the sum so far, where the backward pass has made
// it; what the sum is read by afterwards, an optimizer, reads what holds it afterwards. Law: nothing else changes, and a cotangent of a
// parameter is the sum.
//
// Whole: of a parameter that a group gathers the sum is of the gradient before it is reduced, and reductions are of the sum. Copies:
// a sum that is still to be reduced is copied for the reduction, so that passes may say where it lies (buckets).
//
// A sum has the specs of its gradient, partial ones too, densely stored. Sums stand behind a row of redistributions, so that a
// group's reductions stay side by side.
template <bool Whole, bool Copies>
struct keep_sums {
  template <class Graph, int Forward>
  struct sums_state {
    static constexpr int forward = Forward;
    static constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
    Graph g{typename Graph::unfilled{}};
    int cotangent[Forward > 0 ? Forward : 1];
    std::int32_t to[capacity];
    std::int32_t first[capacity];                  // of a node: a parameter whose gradient it is, plus one; 0: none
    std::int32_t reduces[capacity];                // of a node: the parameter whose sum it reduces, plus one
    std::int32_t next[Forward > 0 ? Forward : 1];  // another parameter with the same gradient, plus one
    std::int32_t root[Forward > 0 ? Forward : 1];  // of a parameter: the node whose value is summed, -1: none is
    std::int32_t sum[Forward > 0 ? Forward : 1];   // and what holds it afterwards
    std::int32_t waiting[Forward > 0 ? Forward : 1];
    int waits, cursor, states;
  };

  // Whether node i is a parameter that has a gradient.
  template <class Joint>
  static constexpr bool is_kept(const Joint& from, int i) {
    return from.g.nodes[i].op == op_code::param && from.cotangent[i] >= 0;
  }
  template <class Source>
  static constexpr int forward = static_cast<int>(sizeof(Source::value.cotangent) / sizeof(int));
  template <class Source>
  static constexpr int kept = [] {
    int n = 0;
    for (int i = 0; i < forward<Source>; ++i) n += is_kept(Source::value, i) ? 1 : 0;
    return n;
  }();
  template <class Source>
  using joint = std::remove_cvref_t<decltype(Source::value.g)>;
  template <class Source>
  using state = sums_state<
      resized<joint<Source>, Source::value.g.node_count + 5 * kept<Source>, joint<Source>::spec_capacity + kept<Source>>,
      forward<Source>>;

  template <class Source>
  static constexpr int stages(int nodes) {
    return Source::value.g.node_count / nodes + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    const auto& from = Source::value;
    begin(st, from.g);
    for (int i = 0; i < State::forward; ++i)
      if (is_kept(from, i)) st.root[i] = from.cotangent[i];
    if constexpr (Whole)
      for (int i = 0; i < State::forward; ++i)
        if (gathers_parameter(from.g.nodes[i])) sum_before_reduction(st, from.g, i);
    for (int i = 0; i < State::forward; ++i) {
      if (st.root[i] < 0) continue;
      st.next[i] = st.first[st.root[i]];
      st.first[st.root[i]] = i + 1;
    }
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    const auto& from = Source::value;
    const int n = from.g.node_count;
    if (st.cursor > n) return;
    builder b = st.g.edit();
    for (; nodes > 0 && st.cursor < n; --nodes) {
      const int i = st.cursor++;
      if (st.waits > 0 && (st.reduces[i] > 0 || !stands_between(from.g, i))) add_up(st, b, from);
      node x = from.g.nodes[i];
      for (int k = 0; k < x.inputs; ++k) x.in[k] = st.to[x.in[k]];
      if (st.reduces[i] > 0) x.in[0] = st.sum[st.reduces[i] - 1];
      st.to[i] = b.append(x);
      for (int p = st.first[i]; p > 0; p = st.next[p - 1]) st.waiting[st.waits++] = p - 1;
    }
    if (st.cursor == n && nodes > 0) {
      add_up(st, b, from);
      ++st.cursor;
      for (int i = 0; i < State::forward; ++i)
        if (st.root[i] >= 0) st.cotangent[i] = summed(st, b, from.cotangent[i], i);
    }
    st.g.finish(b);
    if (st.cursor <= n) return;
    copy_outputs(st.g, from.g, st.to);
  }

 private:
  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g) {
    begin_anew(st.g, g);
    for (int i = 0; i < (State::forward > 0 ? State::forward : 1); ++i) {
      st.cotangent[i] = st.sum[i] = st.root[i] = -1;
      st.next[i] = st.waiting[i] = 0;
    }
    for (int i = 0; i < State::capacity; ++i) st.to[i] = st.first[i] = st.reduces[i] = 0;
    st.waits = st.cursor = st.states = 0;
  }

  // Of the parameter that node i gathers.
  template <class State, class Graph>
  static constexpr void sum_before_reduction(State& st, const Graph& g, int i) {
    int leaf = g.nodes[i].in[0];
    while (gathers_parameter(g.nodes[leaf]) || casts_parameter(g.nodes[leaf])) leaf = g.nodes[leaf].in[0];
    if (st.root[leaf] < 0) return;
    const int r = reduction_of(g, st.root[leaf]);
    if (r < 0) return;
    st.reduces[r] = leaf + 1;
    st.root[leaf] = g.nodes[r].in[0];
  }
  // The first of the reductions between ranks by which a gathered parameter's gradient comes about; -1: there is none.
  template <class Graph>
  static constexpr int reduction_of(const Graph& g, int i) {
    int found = -1;
    while (g.nodes[i].op == op_code::redistribute || g.nodes[i].op == op_code::cast ||
           g.nodes[i].op == op_code::contiguous) {
      const node& n = g.nodes[i];
      if (n.op == op_code::redistribute && communicates(shardwise::detail::transition_at(g, i)) &&
          g.spec_of(n.in[0]).place[attributes_of<redistribute_attributes>(n.a).axis].is_partial())
        found = i;
      i = n.in[0];
    }
    return found;
  }
  // What may stand between neighbours of a batch.
  template <class Graph>
  static constexpr bool stands_between(const Graph& g, int i) {
    const node& n = g.nodes[i];
    return n.op == op_code::redistribute || n.op == op_code::contiguous || n.op == op_code::cast || !runs_kernel(n.op) ||
           (n.inputs > 0 && may_view(n.op) && is_view(n, g.spec_of(n.in[0]), g.spec_of(i)));
  }

  // The sums of the gradients that have been made.
  template <class State, class Joint>
  static constexpr void add_up(State& st, builder& b, const Joint& from) {
    for (int k = 0; k < st.waits; ++k) {
      const int p = st.waiting[k];
      const node& leaf = from.g.nodes[p];
      int id = st.to[st.root[p]];
      const int scope = b.nodes[id].scope;
      if (const spec s = b.specs[b.nodes[id].spec]; !is_contiguous(s))
        id = b.emit(op_code::contiguous, {}, 0, b.intern(contiguous(s)), scope, id);
      const int own = b.nodes[id].spec;
      const op_attr holds =
          attributes<leaf_attributes>(st.states++, attributes_of<leaf_attributes>(leaf.a).index, kept_gradient);
      const int sum = b.emit(op_code::state, holds, 0, own, leaf.scope);
      const int added = b.emit(op_code::add, {}, 0, own, scope, sum, id);
      st.sum[p] = b.emit(op_code::in_place, {}, 0, own, scope, sum, added);
    }
    st.waits = 0;
  }
  // The gradient of parameter p, which was node `c`, as the sum.
  template <class State>
  static constexpr int summed(State& st, builder& b, int c, int p) {
    if (st.root[p] != c) return st.to[c];  // what is reduced is the sum
    const int id = st.sum[p];
    if constexpr (Copies) {
      const spec& s = b.specs[b.nodes[id].spec];
      for (int a = 0; a < s.axes; ++a)
        if (s.place[a].is_partial() && s.axis_size[a] > 1)
          return b.emit(op_code::contiguous, {}, 0, b.nodes[id].spec, b.nodes[id].scope, id);
    }
    return id;
  }
};

}  // namespace shardwise::inline v0_1::autodiff

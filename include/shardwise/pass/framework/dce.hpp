// SPDX-License-Identifier: Apache-2.0
// Dead-code elimination: keeps what outputs, updates and their operands need, in the same order.
#pragma once

#include <shardwise/graph/storage.hpp>

namespace shardwise::inline v0_1::passes {

template <class Graph>
constexpr int mark_live(const Graph& g, unsigned char* live) {
  for (int i = 0; i < g.output_count; ++i) live[g.outputs[i]] = 1;
  int count = 0;
  for (int i = g.node_count - 1; i >= 0; --i) {
    const node& n = g.nodes[i];
    if (!live[i]) {
      if (!is_update(n.op) && !is_leaf(n.op) && !places_leaves(n)) continue;
      live[i] = 1;
    }
    ++count;
    for (int k = 0; k < n.inputs; ++k) live[n.in[k]] = 1;
  }
  return count;
}

namespace detail {

template <int Nodes>
struct live_mask {
  unsigned char live[Nodes > 0 ? Nodes : 1]{};
  int kept = 0;
};

template <class Graph>
constexpr auto marked(const Graph& g) {
  live_mask<Graph::node_capacity> m;
  m.kept = mark_live(g, m.live);
  return m;
}

template <class To, class From>
constexpr void keep(To& r, const From& g, const unsigned char* live) {
  int to[From::node_capacity > 0 ? From::node_capacity : 1]{};
  int count = 0;
  const int size = g.node_count;
  for (int i = 0; i < size; ++i) {
    if (!live[i]) continue;
    node& n = r.nodes[count];
    n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
    to[i] = count++;
  }
  r.node_count = count;
  for (int i = count; i < To::node_capacity; ++i) r.nodes[i] = empty_node;
  copy_frame(r, g);
  for (int i = 0; i < To::output_capacity; ++i) r.outputs[i] = i < g.output_count ? to[g.outputs[i]] : -1;
  r.output_count = g.output_count;
}

}  // namespace detail

// Of a source, once.
template <class Source>
inline constexpr auto live_marks = detail::marked(Source::value);

// Source::value is the graph; the result is exactly as large as what lives, or the graph itself where all of it lives. A source that
// says all_live is not looked at.
template <class Source>
struct eliminate_dead {
 private:
  static constexpr const auto& marked = live_marks<Source>;

  template <bool All, class = void>
  struct result {
    static constexpr const auto& value = Source::value;
  };
  template <class T>
  struct result<false, T> {
    static constexpr auto value = [] {
      using kept = resized<graph_type_of<Source>, marked.kept, Source::value.spec_count>;
      kept r(typename kept::unfilled{});
      detail::keep(r, Source::value, marked.live);
      return r;
    }();
  };

 public:
  static constexpr bool unchanged = marked.kept == Source::value.node_count, all_live = true;
  static constexpr const auto& value = result<unchanged>::value;
};
template <class Source>
  requires(Source::all_live)
struct eliminate_dead<Source> {
  static constexpr bool unchanged = true, all_live = true;
  static constexpr const auto& value = Source::value;
};

}  // namespace shardwise::inline v0_1::passes

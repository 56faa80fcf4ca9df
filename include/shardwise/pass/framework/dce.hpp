// SPDX-License-Identifier: Apache-2.0
// Dead-code elimination: keeps what outputs, updates and their operands need, in the same order.
#pragma once

#include <shardwise/graph/storage.hpp>

namespace shardwise::passes {

template <class Graph>
constexpr int mark_live(const Graph& g, unsigned char* live) {
  for (int i = 0; i < g.output_count; ++i) live[g.outputs[i]] = 1;
  int count = 0;
  for (int i = g.node_count - 1; i >= 0; --i) {
    const node& n = g.nodes[i];
    if (is_update(n.op) || is_leaf(n.op) || places_leaves(n)) live[i] = 1;
    if (!live[i]) continue;
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
  for (int i = 0; i < g.spec_count; ++i) {
    r.specs[i] = g.specs[i];
    r.hashes[i] = g.hashes[i];
  }
  r.spec_count = g.spec_count;
  for (int i = 0; i < g.scope_count; ++i) r.scopes[i] = g.scopes[i];
  r.scope_count = g.scope_count;
  r.sites = g.sites;
  copy_functions(r, g);
  for (int i = 0; i < g.output_count; ++i) r.outputs[i] = to[g.outputs[i]];
  r.output_count = g.output_count;
  r.error = g.error;
}

}  // namespace detail

// Source::value is the graph; the result is exactly as large as what lives, or the graph itself where all of it lives.
template <class Source>
struct eliminate_dead {
 private:
  static constexpr auto marked = detail::marked(Source::value);

  template <bool All, class = void>
  struct result {
    static constexpr const auto& value = Source::value;
  };
  template <class T>
  struct result<false, T> {
    static constexpr auto value = [] {
      resized<graph_type_of<Source>, marked.kept, Source::value.spec_count> r;
      detail::keep(r, Source::value, marked.live);
      return r;
    }();
  };

 public:
  static constexpr const auto& value = result<(marked.kept == Source::value.node_count)>::value;
};

}  // namespace shardwise::passes

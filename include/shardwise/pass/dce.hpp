// SPDX-License-Identifier: Apache-2.0
// Dead-code elimination: keeps what outputs, updates and their operands need, in the same order.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::passes {

// Parameters, states and inputs stay: they belong to the caller whether or not a step reads them.
constexpr bool is_leaf(op_code op) { return op == op_code::param || op == op_code::state || op == op_code::input; }

template <class Graph>
constexpr int mark_live(const Graph& g, unsigned char* live) {
  for (int i = 0; i < g.output_count; ++i) live[g.outputs[i]] = 1;
  int count = 0;
  for (int i = g.node_count - 1; i >= 0; --i) {
    const node& n = g.nodes[i];
    if (is_update(n.op) || is_leaf(n.op)) live[i] = 1;
    if (!live[i]) continue;
    ++count;
    for (int k = 0; k < n.inputs; ++k) live[n.in[k]] = 1;
  }
  return count;
}

// Source::value is the graph; the result is exactly as large as what lives.
template <class Source>
struct eliminate_dead {
 private:
  static constexpr int total = graph_type_of<Source>::node_capacity;
  struct mask {
    unsigned char live[total > 0 ? total : 1]{};
    int kept = 0, specs = 0;
  };
  static constexpr mask marked = [] {
    mask m;
    const auto g = Source::value;
    m.kept = mark_live(g, m.live);
    m.specs = g.spec_count;
    return m;
  }();
  static constexpr int specs = marked.specs;

 public:
  static constexpr auto value = [] {
    const auto g = Source::value;
    graph<marked.kept, specs, graph_type_of<Source>::scope_capacity> r;
    const unsigned char* const live = marked.live;
    const node* const from = g.nodes;
    int to[total > 0 ? total : 1]{};
    int count = 0;
    const int size = g.node_count;
    for (int i = 0; i < size; ++i) {
      if (!live[i]) continue;
      node& n = r.nodes[count];
      n = from[i];
      for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];
      to[i] = count++;
    }
    r.node_count = count;
    for (int i = 0; i < specs; ++i) {
      r.specs[i] = g.specs[i];
      r.hashes[i] = g.hashes[i];
    }
    r.spec_count = specs;
    for (int i = 0; i < g.scope_count; ++i) r.scopes[i] = g.scopes[i];
    r.scope_count = g.scope_count;
    r.sites = g.sites;
    copy_functions(r, g);
    for (int i = 0; i < g.output_count; ++i) r.outputs[i] = to[g.outputs[i]];
    r.output_count = g.output_count;
    r.error = g.error;
    return r;
  }();
};

}  // namespace shardwise::passes

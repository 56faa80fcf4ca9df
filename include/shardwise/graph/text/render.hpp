// SPDX-License-Identifier: Apache-2.0
// render: a graph as a string: program text, one node a line (name, operation, operands, extents, placements, module),
// Graphviz, Mermaid.
#pragma once

#include <string>
#include <vector>

#include <shardwise/graph/text/text.hpp>

namespace shardwise::inline v0_1 {

inline std::string to_string(const placement& p) {
  std::string out;
  text::put_placement(out, p);
  return out;
}

inline std::string extents_text(const spec& s) {
  std::string out;
  text::put_extents(out, s);
  return out;
}

template <class Graph>
std::string module_path(const Graph& g, int at) {
  std::string out;
  text::put_module(out, g, at);
  return out;
}

// "relu_1": unique in the graph.
template <class Graph>
std::vector<std::string> node_names(const Graph& g) {
  std::vector<int> number(static_cast<std::size_t>(g.node_count) + 1);
  number_nodes(g, number.data());
  std::vector<std::string> names(static_cast<std::size_t>(g.node_count));
  for (int i = 0; i < g.node_count; ++i) text::put_name(names[static_cast<std::size_t>(i)], g, i, number.data());
  return names;
}

template <class Graph>
std::string to_text(const Graph& g, text_format format = text_format::program) {
  std::vector<int> number(static_cast<std::size_t>(g.node_count) + 1);
  number_nodes(g, number.data());
  std::string out;
  text::put_head(out, format);
  for (int i = 0; i < g.node_count; ++i) text::put_node(out, format, g, i, number.data());
  text::put_tail(out, format, g, number.data());
  return out;
}

}  // namespace shardwise::inline v0_1

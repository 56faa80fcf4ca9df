// SPDX-License-Identifier: Apache-2.0
// render: a graph as text, one node a line: name, operation, operands, extents, placements, module.
#pragma once

#include <string>

#include <shardwise/graph/graph.hpp>

namespace shardwise {

inline std::string to_string(const placement& p) {
  switch (p.kind) {
    case placement_kind::replicate: return "replicate";
    case placement_kind::reduced: return "reduced";
    case placement_kind::partial: return "partial";
    default: return "shard<" + std::to_string(p.dim) + (p.block == 1 ? "" : ", " + std::to_string(p.block)) + ">";
  }
}

inline std::string extents_text(const spec& s) {
  std::string t = "(";
  for (int d = 0; d < s.rank; ++d) t += (d ? ", " : "") + std::to_string(s.extent[d]);
  return t + ")";
}

// "layers.3.attn" from the module tree; the model itself has an empty name.
template <class Graph>
std::string module_path(const Graph& g, int at) {
  std::string path;
  while (at >= 0) {
    const scope& s = g.scopes[at];
    const std::string part = s.name ? std::string(s.name) : std::to_string(s.index);
    if (!part.empty()) path = path.empty() ? part : part + "." + path;
    at = s.parent;
  }
  return path;
}

template <class Graph>
std::string to_text(const Graph& g) {
  std::string out;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    const spec& s = g.specs[n.spec];
    out += "%" + std::to_string(i) + " = " + name_of(n.op) + "(";
    for (int k = 0; k < n.inputs; ++k) out += (k ? ", %" : "%") + std::to_string(n.in[k]);
    out += ") " + extents_text(s);
    for (int a = 0; a < s.axes; ++a) out += (a ? ", " : " [") + to_string(s.place[a]);
    out += "]";
    const std::string path = module_path(g, n.scope);
    if (!path.empty()) out += "  # " + path;
    out += "\n";
  }
  for (int k = 0; k < g.output_count; ++k) out += "return %" + std::to_string(g.outputs[k]) + "\n";
  return out;
}

}  // namespace shardwise

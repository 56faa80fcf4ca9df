// SPDX-License-Identifier: Apache-2.0
// timeline_program_of: names, modules, shapes and bytes of a lowered program's calls, for a timeline.
#pragma once

#include <string>
#include <vector>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/runtime/program/lowered_program.hpp>
#include <shardwise/runtime/timeline/timeline.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

// What moves elements and computes nothing.
constexpr bool is_copy(op_code op) {
  return op == op_code::contiguous || op == op_code::assign || op == op_code::redistribute || op == op_code::pad ||
         op == op_code::cat;
}

inline std::string block_text(const layout& l) {
  std::string out = "(";
  for (int d = 0; d < l.rank; ++d) out += (d > 0 ? ", " : "") + std::to_string(l.ext[d]);
  return out + ")";
}

// Bytes of the arena in use at each node: leaves and workspace always, a buffer from the first node whose value lies in it, or
// that computes it as one of its results, to the last one that reads it.
inline dynamic_array<std::int64_t> live_bytes(const graph_view& g, const plan_view& plan) {
  const std::size_t n = static_cast<std::size_t>(g.node_count);
  dynamic_array<std::int64_t> change(n + 1, 0);
  dynamic_array<bool> born(n, false);
  for (int i = 0; i < g.node_count; ++i) {
    const std::size_t own = static_cast<std::size_t>(plan.owner[i]);
    if (is_leaf(g.nodes[i].op) || is_leaf(g.nodes[own].op) || places_leaves(g.nodes[own]) || born[own]) continue;
    born[own] = true;
    const std::int64_t bytes = passes::align_up(plan.bytes[own]);
    const int where = g.nodes[i].op == op_code::getitem ? g.nodes[i].in[0] : batch_begin(g, i);  // computed there
    change[static_cast<std::size_t>(where)] += bytes;
    if (plan.last_use[own] < g.node_count) change[static_cast<std::size_t>(plan.last_use[own]) + 1] -= bytes;
  }
  std::int64_t live = plan.persistent_end;
  for (std::int64_t& c : change) c = live += c;
  return change;
}

inline timeline_program timeline_program_of(const lowered_program& l, const int* coordinate, const run_sizes& n_dyn,
                                            const std::string& phase) {
  const graph_view& g = l.tables().graph;
  const std::vector<std::string> names = node_names(g);
  const dynamic_array<std::int64_t> live = live_bytes(g, l.tables().plan);
  timeline_program p;
  p.phase = phase;
  p.arena = l.tables().plan.peak;
  for (const call& c : l.calls()) {
    const node& n = g.nodes[c.node];
    timeline_call t;
    const bool sends = communicates(c.kind);
    t.kind = sends ? call_kind::communication : is_copy(n.op) ? call_kind::copy : call_kind::compute;
    t.node = c.node;
    t.name = names[static_cast<std::size_t>(c.node)];
    t.op = name_of(g, n);
    t.module = module_path(g, n.scope);
    if (n.expression >= 0) text::put_expression(t.fused, g.expressions[n.expression]);
    for (int k = 0; k < n.inputs; ++k) {
      t.shapes += (k > 0 ? ", " : "") + block_text(l.layout_of(n.in[k]));
      t.bytes += static_cast<std::int64_t>(l.bytes_of(n.in[k]));
    }
    if (c.results) {
      t.shapes += " -> ";
      bool first = true;
      for (int j = c.node + 1; j < g.node_count; ++j) {
        if (g.nodes[j].op != op_code::getitem || g.nodes[j].in[0] != c.node) continue;
        t.shapes += (first ? "" : ", ") + block_text(l.layout_of(j));
        t.bytes += static_cast<std::int64_t>(l.bytes_of(j));
        first = false;
      }
    } else if (!is_update(n.op)) {
      t.shapes += (n.inputs > 0 ? " -> " : "-> ") + block_text(l.layout_of(c.node));
      t.bytes += static_cast<std::int64_t>(l.bytes_of(c.node));
    }
    text::put_placements(t.placements, g.spec_of(c.node));
    if (sends) t.sent = bytes_sent(g.spec_of(n.in[0]), g.spec_of(c.node), c.axis, coordinate, n_dyn);
    t.live = live[static_cast<std::size_t>(c.node)];
    p.calls.push_back(static_cast<timeline_call&&>(t));
  }
  return p;
}

template <class Rank>
timeline_rank timeline_rank_of(const Rank& rank) {
  timeline_rank r{rank.index(), Rank::size(), "host", ""};
  if constexpr (requires { Rank::backend_name; }) r.backend = Rank::backend_name;
  for (int a = 0; a < Rank::mesh_type::axes; ++a) r.coordinate += (a > 0 ? ", " : "") + std::to_string(rank.coordinate(a));
  return r;
}

}  // namespace shardwise::inline v0_1::runtime

// SPDX-License-Identifier: Apache-2.0
// Phases of a program: which nodes are the forward pass, which compute gradients, which update parameters; and the bytes
// sent in each.
#pragma once

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// What a node is for: the program's first output; gradients; updates of parameters.
enum class program_phase : std::uint8_t { forward, backward, optimizer, count };
inline constexpr int program_phases = static_cast<int>(program_phase::count);

constexpr const char* name_of(program_phase p) {
  constexpr const char* names[] = {"forward", "backward", "optimizer"};
  return p < program_phase::count ? names[static_cast<int>(p)] : "?";
}

namespace passes {

// By dependence, whatever order passes have brought the nodes into. A node that the first output depends on is forward (of a
// step that updates parameters, any output: the others are metrics), and so are all results that such a node computes;
// an update, and what is computed from parameters' gradients, is the optimizer's; the rest is backward, collectives of
// gradients included.
template <int Nodes>
struct phase_marks {
  unsigned char phase[Nodes]{};     // of program_phase
  unsigned char gradient[Nodes]{};  // 1: an update reads it, at once or after redistributions and views

  constexpr program_phase of(int i) const { return static_cast<program_phase>(phase[i]); }
};

template <int Nodes, class Graph>
constexpr void mark_phases(phase_marks<Nodes>& m, const Graph& g) {
  constexpr auto forward = static_cast<unsigned char>(program_phase::forward);
  constexpr auto backward = static_cast<unsigned char>(program_phase::backward);
  constexpr auto optimizer = static_cast<unsigned char>(program_phase::optimizer);
  for (int i = 0; i < g.node_count; ++i) m.phase[i] = backward;
  bool updates = false;
  for (int i = g.node_count - 1; i >= 0 && !updates; --i) {
    updates = is_optimizer(g.nodes[i].op);
  }
  for (int k = 0; k < (updates ? g.output_count : g.output_count > 0 ? 1 : 0); ++k) m.phase[g.outputs[k]] = forward;
  for (int i = g.node_count - 1; i >= 0; --i) {
    const node& x = g.nodes[i];
    if (m.phase[i] == forward)
      for (int k = 0; k < x.inputs; ++k) m.phase[x.in[k]] = forward;
    if (is_optimizer(x.op)) {
      m.gradient[x.in[1]] = 1;
      for (int p = x.in[0]; g.nodes[p].op == op_code::redistribute; p = g.nodes[p].in[0]) m.phase[p] = optimizer;
    }
    if (m.gradient[i] && (may_view(x.op) || x.op == op_code::pack))
      for (int k = 0; k < x.inputs && (k == 0 || x.op == op_code::pack); ++k)
        if (g.nodes[x.in[k]].op != op_code::room) m.gradient[x.in[k]] = 1;  // a room is read by who writes into it
  }
  for (int i = 0; i < g.node_count; ++i) {
    const node& x = g.nodes[i];
    if (x.op == op_code::getitem) {  // it is computed there, maybe beside gradients
      m.phase[i] = m.phase[x.in[0]];
      continue;
    }
    if (m.phase[i] == forward) continue;
    if (is_update(x.op)) m.phase[i] = optimizer;
    for (int k = 0; k < x.inputs && !m.gradient[i]; ++k)  // a gradient may be computed from others: clipping
      if (m.gradient[x.in[k]] || m.phase[x.in[k]] == optimizer) m.phase[i] = optimizer;
  }
}

// Payload that the rank at coordinate `c` sends in one run: on one axis or all (-1), by one kind of collective or all
// (none), in one phase or all (count).
template <int Nodes, class Graph>
constexpr std::int64_t sent_bytes(const Graph& g, const phase_marks<Nodes>& m, int axis, transition kind,
                                  program_phase phase, const int* c) {
  std::int64_t total = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const node& x = g.nodes[i];
    if (x.op != op_code::redistribute) continue;
    const int a = static_cast<int>(attributes_of<redistribute_attributes>(x.a).axis);
    const spec& from = g.specs[g.nodes[x.in[0]].spec];
    const spec& to = g.specs[x.spec];
    const transition t = transition_of(from.place[a], to.place[a], from.axis_size[a]);
    if (!communicates(t) || (axis >= 0 && a != axis) || (kind != transition::none && t != kind) ||
        (phase != program_phase::count && m.of(i) != phase))
      continue;
    total += bytes_sent(from, to, a, c);
  }
  return total;
}

// Of one rank, or (rank < 0) of the busiest.
template <class Mesh, class Graph>
constexpr std::int64_t busiest_bytes(const Graph& g, int axis, transition kind, program_phase phase, int rank) {
  phase_marks<Graph::node_capacity> m;
  mark_phases(m, g);
  std::int64_t most = 0;
  for (int r = 0; r < Mesh::size; ++r) {
    if (rank >= 0 && r != rank) continue;
    const auto c = Mesh::coordinate(r);
    const std::int64_t sent = sent_bytes(g, m, axis, kind, phase, c.data());
    if (sent > most) most = sent;
  }
  return most;
}

}  // namespace passes

}  // namespace shardwise::inline v0_1

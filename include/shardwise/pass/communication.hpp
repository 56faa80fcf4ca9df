// SPDX-License-Identifier: Apache-2.0
// Communication as constants: the distinct transitions of a program, how often each occurs, the bytes each rank sends.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/propagation/transition.hpp>

namespace shardwise::passes {

struct traffic_item {
  int from = -1, to = -1;  // spec ids
  int axis = 0;
  int count = 0;
};

inline constexpr int max_traffic = 192;

struct traffic {
  traffic_item item[max_traffic]{};
  int count = 0;
  int collectives = 0;
  std::uint64_t order_hash = 1469598103934665603ULL;  // of the ordered list of collectives, equal on all ranks
};

template <class Graph>
constexpr traffic traffic_of(const Graph& g) {
  traffic t;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    if (n.op != op_code::redistribute) continue;
    const int from = g.nodes[n.in[0]].spec, to = n.spec, axis = static_cast<int>(n.a.v[0]);
    const spec& a = g.specs[from];
    const transition kind = transition_of(a.place[axis], g.specs[to].place[axis], a.axis_size[axis]);
    if (!communicates(kind)) continue;
    ++t.collectives;
    for (std::uint64_t v : {static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(axis), g.hashes[from], g.hashes[to]})
      t.order_hash = (t.order_hash ^ v) * 1099511628211ULL;
    int k = 0;
    while (k < t.count && !(t.item[k].from == from && t.item[k].to == to && t.item[k].axis == axis)) ++k;
    if (k == t.count && t.count < max_traffic) t.item[t.count++] = {from, to, axis, 0};
    if (k < max_traffic) ++t.item[k].count;
  }
  return t;
}

// Bytes that the rank with coordinate `c` writes into other ranks' memory on `axis` (all axes: -1) in one run.
template <class Graph>
constexpr std::int64_t sent_bytes(const Graph& g, const traffic& t, int axis, const int* c) {
  std::int64_t total = 0;
  for (int k = 0; k < t.count; ++k)
    if (axis < 0 || t.item[k].axis == axis)
      total += t.item[k].count * bytes_sent(g.specs[t.item[k].from], g.specs[t.item[k].to], t.item[k].axis, c);
  return total;
}

// Of one rank, or (rank < 0) of the busiest.
template <class Mesh, class Graph>
constexpr std::int64_t busiest_bytes(const Graph& g, const traffic& t, int axis, int rank) {
  std::int64_t most = 0;
  for (int r = 0; r < Mesh::size; ++r) {
    if (rank >= 0 && r != rank) continue;
    const auto c = Mesh::coordinate(r);
    const std::int64_t sent = sent_bytes(g, t, axis, c.data());
    if (sent > most) most = sent;
  }
  return most;
}

}  // namespace shardwise::passes

// SPDX-License-Identifier: Apache-2.0
// Communication as constants: the distinct transitions of a program, how often each occurs, the bytes each rank sends.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/propagation/transition.hpp>

namespace shardwise::inline v0_1::passes {

struct traffic_item {
  int from = -1, to = -1;  // spec ids
  int axis = 0;
  int count = 0;
};

// How many collectives a program has, a batch counted once, and a hash of their ordered list, equal on all ranks; and how many
// redistributions they are.
struct collective_order {
  int collectives = 0, members = 0;
  std::uint64_t order_hash = hash_seed;

  constexpr bool operator==(const collective_order&) const = default;
};

// The distinct transitions, in the order in which they first occur. Room is for as many as the program has members of collectives.
template <int Members>
struct traffic_list {
  static constexpr int capacity = Members > 0 ? Members : 1;
  traffic_item item[capacity]{};
  int count = 0;
  int collectives = 0;
  std::uint64_t order_hash = 0;
};

namespace detail {
// Calls f(from, to, axis, kind, goes_on) for every collective, in program order; from and to are spec ids. Of a batch for every
// member; all but the first go on with it. live: by number, whether a node is looked at; no pointer to marks, which g++'s sanitizers
// would not compare with null in a constant.
struct every_node {
  constexpr bool operator[](int) const { return true; }
};
template <class Graph, class F, class Live = every_node>
constexpr void each_collective(const Graph& g, F&& f, const Live& live = {}) {
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    if (n.op != op_code::redistribute || !live[i]) continue;
    const int from = g.nodes[n.in[0]].spec, to = n.spec;
    const int axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
    const spec& a = g.specs[from];
    const transition kind = transition_of(a.place[axis], g.specs[to].place[axis], a.axis_size[axis]);
    if (communicates(kind)) f(from, to, axis, kind, joins_batch(g, i));
  }
}
}  // namespace detail

template <class Graph, class Live = detail::every_node>
constexpr collective_order order_of(const Graph& g, const Live& live = {}) {
  collective_order r;
  detail::each_collective(
      g,
      [&](int from, int to, int axis, transition kind, bool goes_on) {
        ++r.members;
        r.collectives += goes_on ? 0 : 1;
        if (goes_on) r.order_hash = hash_mixed(r.order_hash, hash_seed);
        for (std::uint64_t v :
             {static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(axis), g.hashes[from], g.hashes[to]})
          r.order_hash = hash_mixed(r.order_hash, v);
      },
      live);
  return r;
}

// `Members` is order_of(g).members.
template <int Members, class Graph>
constexpr traffic_list<Members> traffic_of(const Graph& g) {
  traffic_list<Members> t;
  const collective_order order = order_of(g);
  t.collectives = order.collectives;
  t.order_hash = order.order_hash;
  constexpr int slots = 2 * traffic_list<Members>::capacity + 1;
  int found[slots]{};  // by hash: an item, plus one
  detail::each_collective(g, [&](int from, int to, int axis, transition, bool) {
    int at = static_cast<int>((static_cast<std::uint32_t>(from) * 40503U + static_cast<std::uint32_t>(to) * 9973U +
                               static_cast<std::uint32_t>(axis)) %
                              static_cast<std::uint32_t>(slots));
    for (; found[at] > 0; at = at + 1 == slots ? 0 : at + 1)
      if (const traffic_item& k = t.item[found[at] - 1]; k.from == from && k.to == to && k.axis == axis) break;
    if (found[at] == 0) {
      t.item[t.count] = {from, to, axis, 0};
      found[at] = ++t.count;
    }
    ++t.item[found[at] - 1].count;
  });
  return t;
}

// The same of nodes [begin, end) alone, by the rank with coordinate `c`, or (rank < 0) by the busiest.
template <class Mesh, class Graph>
constexpr std::int64_t bytes_between(const Graph& g, int axis, int begin, int end, int rank) {
  std::int64_t most = 0;
  for (int r = 0; r < Mesh::size; ++r) {
    if (rank >= 0 && r != rank) continue;
    const auto c = Mesh::coordinate(r);
    std::int64_t sent = 0;
    for (int i = begin; i < end; ++i)
      if (communicates(shardwise::detail::transition_at(g, i)))
        if (const int a = static_cast<int>(attributes_of<redistribute_attributes>(g.nodes[i].a).axis); a == axis)
          sent += bytes_sent(g.spec_of(g.nodes[i].in[0]), g.spec_of(i), a, c.data());
    if (sent > most) most = sent;
  }
  return most;
}

// Bytes that the rank with coordinate `c` writes into other ranks' memory on `axis` (all axes: -1) in one run.
template <class Graph, int Members>
constexpr std::int64_t sent_bytes(const Graph& g, const traffic_list<Members>& t, int axis, const int* c) {
  std::int64_t total = 0;
  for (int k = 0; k < t.count; ++k)
    if (axis < 0 || t.item[k].axis == axis)
      total += t.item[k].count * bytes_sent(g.specs[t.item[k].from], g.specs[t.item[k].to], t.item[k].axis, c);
  return total;
}

// Of one rank, or (rank < 0) of the busiest.
template <class Mesh, class Graph, int Members>
constexpr std::int64_t busiest_bytes(const Graph& g, const traffic_list<Members>& t, int axis, int rank) {
  std::int64_t most = 0;
  for (int r = 0; r < Mesh::size; ++r) {
    if (rank >= 0 && r != rank) continue;
    const auto c = Mesh::coordinate(r);
    const std::int64_t sent = sent_bytes(g, t, axis, c.data());
    if (sent > most) most = sent;
  }
  return most;
}

}  // namespace shardwise::inline v0_1::passes

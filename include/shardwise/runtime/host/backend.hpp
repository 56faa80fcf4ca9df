// SPDX-License-Identifier: Apache-2.0
// host_backend: which scratch host kernels need, and the table of kernels that a program instantiates.
#pragma once

#include <shardwise/graph/waits.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/runtime/host/einsum.hpp>

namespace shardwise {

struct host_backend {
  // Largest scratch of any node on the ranks at coordinate 0: packed matrix panels, inboxes of reductions.
  template <class Source>
  static constexpr std::int64_t workspace_bytes() {
    const std::int64_t beside = stream_workspace(Source::value);
    const std::int64_t most = largest_workspace(Source::value);
    return beside > 0 ? passes::align_up(most) + beside : most;
  }
  // Of the collectives that run beside kernels: theirs lies behind the kernels' scratch.
  template <class Graph>
  static constexpr std::int64_t stream_workspace(const Graph& g) {
    constexpr int origin[max_axes]{};
    std::int64_t most = 0;
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::wait) continue;
      const int c = collective_of(g, i);
      if (c < 0) continue;
      const node& n = g.nodes[c];
      const spec& x = g.specs[g.nodes[n.in[0]].spec];
      std::int64_t ext[max_rank]{};
      for (int d = 0; d < x.rank; ++d) ext[d] = local_interval(x, d, origin).size;
      const std::int64_t need = workspace_of(n, x, x, g.specs[n.spec], ext, ext);
      if (need > most) most = need;
    }
    return most;
  }
  template <class Graph>
  static constexpr std::int64_t largest_workspace(const Graph& g) {
    const int specs = g.spec_count;
    std::int64_t ext[Graph::spec_capacity][max_rank]{};
    constexpr int origin[max_axes]{};
    for (int s = 0; s < specs; ++s)
      for (int d = 0; d < g.specs[s].rank; ++d) ext[s][d] = local_interval(g.specs[s], d, origin).size;
    std::int64_t most = 0;
    // equal applications need equal scratch, and layers repeat: the last node computed for each key is remembered
    struct application {
      op_code op;
      int x, y, out;
      std::int64_t v[3];
    };
    application known[128];
    for (application& k : known) k.out = -1;
    const int count = g.node_count;
    for (int i = 0; i < count; ++i) {
      const op_code op = g.nodes[i].op;
      if (op != op_code::einsum && op != op_code::redistribute && op != op_code::scatter_dsrc) continue;
      const node n = g.nodes[i];
      const int x = g.nodes[n.in[0]].spec, y = g.nodes[n.in[op == op_code::einsum ? 1 : 0]].spec;
      application& before = known[static_cast<unsigned>(x * 31 + y * 7 + n.spec + static_cast<int>(n.a.v[0])) & 127U];
      if (before.out == n.spec && before.op == op && before.x == x && before.y == y && before.v[0] == n.a.v[0] &&
          before.v[1] == n.a.v[1] && before.v[2] == n.a.v[2])
        continue;
      before = {op, x, y, n.spec, {n.a.v[0], n.a.v[1], n.a.v[2]}};
      const std::int64_t need = workspace_of(n, g.specs[x], g.specs[y], g.specs[n.spec], ext[x], ext[y]);
      if (need > most) most = need;
    }
    return most;
  }

  static constexpr std::int64_t workspace_of(const node& n, const spec& x, const spec& y, const spec& out,
                                             const std::int64_t* ex, const std::int64_t* ey) {
    if (n.op == op_code::einsum)
      return static_cast<std::int64_t>(x.type == dtype::f64 ? host::einsum_workspace<double>(n.a, x, y, ex, ey)
                                                            : host::einsum_workspace<float>(n.a, x, y, ex, ey));
    if (n.op == op_code::scatter_dsrc)  // the last writer of each place of a line
      return (ex[attributes_of<index_attributes>(n.a).dim] + 1) * static_cast<std::int64_t>(sizeof(std::int32_t));
    const int axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
    const int ranks = x.axis_size[axis];
    std::int64_t total = static_cast<std::int64_t>(size_of(x.type));
    for (int d = 0; d < x.rank; ++d) total *= ex[d];
    switch (transition_of(x.place[axis], out.place[axis], ranks)) {
      case transition::all_reduce: return ranks * ceil_div(total / static_cast<std::int64_t>(size_of(x.type)), ranks) *
                                          static_cast<std::int64_t>(size_of(x.type));
      case transition::reduce_scatter: {
        const int d = out.place[axis].dim;
        return ex[d] == 0 ? 0 : total / ex[d] * chunk_size(ex[d], out.place[axis].block, ranks) * ranks;
      }
      case transition::all_gather:  // written where it is wanted
      case transition::all_to_all:
      case transition::none:
      case transition::take_chunk:
      case transition::to_partial:
      case transition::place_chunk: break;
    }
    return 0;
  }
};

namespace runtime {

// A kernel is one function per (operation, element type, expression): sizes, strides, placements and an expression's
// constants are run-time arguments.
struct signature {
  op_code op = op_code::input;
  dtype type = dtype::f32;
  expression then{};
  constexpr bool operator==(const signature&) const = default;
};

// The distinct signatures of a program, a small object that template arguments are read from, and each node's entry.
// Past `Room` signatures are counted and not stored.
template <int Nodes, int Room>
struct kernel_list {
  signature item[Room]{};
  const custom_operation* custom[Room]{};  // of each item, null for the library's own operations
  int count = 0;
  std::int16_t of[Nodes]{};  // -1: no kernel (leaves, views)

  constexpr int add(const signature& s, const custom_operation* own = nullptr) {
    if (count < Room) {
      item[count] = s;
      custom[count] = own;
    }
    return count++;
  }
};

template <int Room, class Graph>
constexpr auto list_kernels(const Graph& g) {
  constexpr int ops = static_cast<int>(op_code::count);
  kernel_list<Graph::node_capacity, Room> k;
  bool runs[ops]{};  // clang takes a step for every case of the switch behind it
  for (int i = 0; i < ops; ++i) runs[i] = runs_kernel(static_cast<op_code>(i));
  std::int16_t seen[ops][dtypes];
  int from[Room]{};  // the expression of each item
  for (auto& row : seen)
    for (auto& v : row) v = -1;
  for (int i = g.node_count; i < Graph::node_capacity; ++i) k.of[i] = -1;
  for (int i = 0; i < g.node_count; ++i) {
    const op_code op = g.nodes[i].op;
    k.of[i] = -1;
    if (!runs[static_cast<int>(op)]) continue;
    const int s = g.nodes[i].spec;
    if (may_view(op) && is_view(g.nodes[i], g.specs[g.nodes[g.nodes[i].in[0]].spec], g.specs[s])) continue;
    const dtype t = g.specs[makes_indices(op) ? g.nodes[g.nodes[i].in[0]].spec : s].type;
    if (op == op_code::custom) {
      const custom_operation* const own = custom_of(g, g.nodes[i]);
      const int stored = k.count < Room ? k.count : Room;
      int at = 0;
      while (at < stored && !(k.item[at].op == op && k.item[at].type == t && is_same_operation(k.custom[at], own))) ++at;
      if (at == stored) at = k.add({op, t, no_expression}, own);
      k.of[i] = static_cast<std::int16_t>(at);
      continue;
    }
    const int e = g.nodes[i].expression;
    if (e >= 0) {
      const int stored = k.count < Room ? k.count : Room;
      int at = 0;
      while (at < stored && !(from[at] == e && k.item[at].op == op && k.item[at].type == t)) ++at;
      if (at == stored) {
        if (at < Room) from[at] = e;
        at = k.add({op, t, g.expressions[e]});
      }
      k.of[i] = static_cast<std::int16_t>(at);
      continue;
    }
    std::int16_t& at = seen[static_cast<int>(op)][static_cast<int>(t)];
    if (at < 0) {
      if (k.count < Room) from[k.count] = -1;
      at = static_cast<std::int16_t>(k.add({op, t, no_expression}));
    }
    k.of[i] = at;
  }
  return k;
}

// First with room for as many as most programs have (`Guess`).
template <class Source, int Guess = 96>
struct kernels_of {
  template <int Room>
  static constexpr auto listed = list_kernels<Room>(Source::value);
  static constexpr int room = listed<Guess>.count <= Guess ? Guess : listed<Guess>.count;
  static constexpr const auto& list = listed<room>;
  struct small {
    signature item[list.count > 0 ? list.count : 1]{};
    const custom_operation* custom[list.count > 0 ? list.count : 1]{};
    int count = 0;
  };
  static constexpr small signatures = [] {
    small s;
    for (int i = 0; i < list.count; ++i) {
      s.item[i] = list.item[i];
      s.custom[i] = list.custom[i];
    }
    s.count = list.count;
    return s;
  }();
};

}  // namespace runtime

}  // namespace shardwise

// SPDX-License-Identifier: Apache-2.0
// kernels_of: which kernels a program instantiates, one for each distinct signature, and which of them a node runs.
#pragma once

#include <cstdint>

#include <shardwise/graph/storage.hpp>
#include <shardwise/operations/all.hpp>

namespace shardwise::inline v0_1 {

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
  const bool low = has_low_precision(g);
  for (auto& row : seen)
    for (auto& v : row) v = -1;
  for (int i = g.node_count; i < Graph::node_capacity; ++i) k.of[i] = -1;
  for (int i = 0; i < g.node_count; ++i) {
    const op_code op = g.nodes[i].op;
    k.of[i] = -1;
    if (!runs[static_cast<int>(op)]) continue;
    const int s = g.nodes[i].spec;
    if (may_view(op) && is_view(g.nodes[i], g.specs[g.nodes[g.nodes[i].in[0]].spec], g.specs[s])) continue;
    const dtype t = low ? kernel_type(g, g.nodes[i]) : g.specs[makes_indices(op) ? g.nodes[g.nodes[i].in[0]].spec : s].type;
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

}  // namespace shardwise::inline v0_1

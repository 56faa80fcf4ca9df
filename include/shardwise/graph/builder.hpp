// SPDX-License-Identifier: Apache-2.0
// builder: nodes and specs in the making; what a trace refuses, and parameters that it gathers where they are first used.
#pragma once

#include <shardwise/graph/node.hpp>

namespace shardwise::inline v0_1 {

// An operation that a program does not admit, as it stood when it was refused: what it was to be, in which module, behind
// how many nodes, and which of them it was to read.
struct refusal {
  problem what = problem::none;
  op_code op = op_code::count;  // count: no operation, but the call of the module
  std::int32_t scope = -1;
  std::int32_t at = 0;
  std::int32_t inputs = 0;
  std::int32_t in[max_inputs] = {-1, -1, -1, -1, -1, -1, -1, -1};
  bool by_value = false;  // types do not tell: it is in the graph's error too

  constexpr explicit operator bool() const { return what != problem::none; }
};

// A parameter that is read otherwise than it is stored: of another element type, in shards and read whole. The first of a group
// to be read casts and gathers all.
struct stored_shard {
  std::int32_t spec = -1;   // of the whole; -1: this leaf is read as it is stored
  std::int32_t axis = -1;   // -1: it is stored whole
  std::int32_t scope = -1;  // of the module whose group it is in
  std::int32_t first = -1;  // the group's first leaf
  std::int32_t next = -1;   // the one after this
  std::int32_t whole = -1;  // the node that gathers it, once there is one
  std::int64_t unshard = 0;
  std::int32_t inner = -1;  // the axis that is gathered last, where there are two
  std::int32_t part = -1;   // the spec before that
  std::int64_t unshard_part = 0;
  std::int32_t low = -1;  // the spec as it is stored but for the type that it is read in, -1: they are of one type
  std::int64_t type = 0, cotangent = 0;  // of the cast
  std::int32_t flat = -1;  // the spec of its group's flat parameter, whole, which the first leaf is; -1: it is in none
  std::int64_t begin = 0;  // where it lies in there
};
struct stored_shards {
  stored_shard* leaf = nullptr;  // by node
  int count = 0;
};
struct call_log;  // graph/calls.hpp

// Nodes and specs in the making, without owning them: the same code appends to constants and to run-time graphs.
// Past the capacity it counts without storing, so that a first guess can be corrected.
struct builder {
  node* nodes = nullptr;
  spec* specs = nullptr;
  std::uint64_t* hashes = nullptr;
  scope* scopes = nullptr;
  const opaque_operation** functions = nullptr;
  const custom_operation** customs = nullptr;
  int node_capacity = 0, spec_capacity = 0, scope_capacity = 0;
  int node_count = 0, spec_count = 0, scope_count = 0;
  int current_scope = -1;
  int sites = 0;  // random sites so far
  int function_count = 0;
  int custom_count = 0;
  int last_write = -1;  // the node that last wrote in place: what was computed before it is not taken for what comes after
  call_log* calls = nullptr;  // is told of modules' calls, null: nobody asks
  bool own_values = false;    // a redistribution has a node of its own even if another one has its value: see sym
  bool same_values = false;   // whether that would have made a difference
  bool bounded = false;       // what has no room is refused, and the last node stands for it, in place of being counted
  const stored_shards* stored = nullptr;  // of a trace under a plan with fully_shard
  graph_finding error{};
  refusal refused{};
  std::int16_t recent[64]{};  // by hash: the spec interned last, plus one

  constexpr bool overflowed() const {
    return node_count > node_capacity || spec_count > spec_capacity || scope_count > scope_capacity;
  }

  // Equal specs have equal ids. The hash is compared first: a full comparison costs about 40 evaluation steps.
  constexpr int intern(const spec& s, std::uint64_t h) {
    std::int16_t& hint = recent[h & 63U];
    if (hint > 0 && hashes[hint - 1] == h && specs[hint - 1] == s) return hint - 1;
    const int n = spec_count < spec_capacity ? spec_count : spec_capacity;
    const std::uint64_t* table = hashes;
    int i = 0;
    while (i < n && !(table[i] == h && specs[i] == s)) ++i;
    if (i == n) {
      if (bounded && spec_count >= spec_capacity) {
        if (!error) error = {problem::adjoint_nodes};
        return spec_capacity - 1;
      }
      if (spec_count++ >= spec_capacity) return spec_count - 1;
      specs[i] = s;
      hashes[i] = h;
    }
    if (i < 32767) hint = static_cast<std::int16_t>(i + 1);
    return i;
  }
  constexpr int intern(const spec& s) { return intern(s, hash_of(s)); }

  // What a recorded node reads: a node of this graph. A parameter that its module does not register was never entered.
  constexpr int operand(int id, op_code op) {
    if (id >= 0) return stored ? gathered(id) : id;
    refuse_value({problem::parameter_unregistered, node_count}, op);
    return 0;
  }

  // The node that has leaf `id` as it is read: at the first use of any parameter of its group all of them are cast, each in the name
  // of its module, and then gathered, side by side, in the order in which the model declares them and in the name of the group's
  // module.
  constexpr int gathered(int id) {
    if (id >= stored->count) return id;
    const stored_shard* const leaf = stored->leaf;
    if (leaf[id].spec < 0) return id;
    if (leaf[id].whole >= 0) return leaf[id].whole;
    if (leaf[id].flat >= 0) return gathered_flat(id);
    const bool shards = leaf[id].axis >= 0, twice = leaf[id].inner >= 0;
    const auto gather = [&](int k, int from, int axis, int to, std::int64_t unshard) {
      const op_attr a = attributes<redistribute_attributes>(axis, pack(reduced_value()), unshard, 0, leaf[k].cotangent);
      stored->leaf[k].whole = emit(op_code::redistribute, a, 0, to, leaf[k].scope, from);
    };
    for (int k = leaf[id].first; k >= 0; k = leaf[k].next) {
      const op_attr a = attributes<cast_attributes>(leaf[k].type, leaf[k].cotangent);
      stored->leaf[k].whole = leaf[k].low < 0 ? k : emit(op_code::cast, a, 0, leaf[k].low, nodes[k].scope, k);
    }
    for (int k = leaf[id].first; shards && k >= 0; k = leaf[k].next)
      gather(k, leaf[k].whole, leaf[k].axis, twice ? leaf[k].part : leaf[k].spec,
             twice ? leaf[k].unshard_part : leaf[k].unshard);
    for (int k = leaf[id].first; twice && k >= 0; k = leaf[k].next)
      gather(k, leaf[k].whole, leaf[k].inner, leaf[k].spec, leaf[k].unshard);
    return leaf[id].whole;
  }

  // The same of a flat group: its flat parameter is gathered, once, and each of its parameters is a view of that.
  constexpr int gathered_flat(int id) {
    stored_shard* const leaf = stored->leaf;
    const int head = leaf[id].first;
    const stored_shard& first = leaf[head];
    const int whole =
        emit(op_code::redistribute, attributes<redistribute_attributes>(first.axis, pack(reduced_value()), first.unshard), 0,
             first.flat, first.scope, head);
    for (int k = head; k >= 0; k = leaf[k].next) {
      const spec used = specs[leaf[k].spec < spec_capacity ? leaf[k].spec : 0];
      spec part = specs[first.flat < spec_capacity ? first.flat : 0];
      part.extent[0] = numel(used);
      part.offset = 1;
      const op_attr at = attributes<slice_attributes>(0, leaf[k].begin, part.extent[0], 1, 1);
      const int scope = k < node_capacity ? nodes[k].scope : -1;
      leaf[k].whole = emit(op_code::slice, at, 0, intern(part), scope, whole);
      leaf[k].whole = emit(op_code::reshape, pack_extents(used), 0, leaf[k].spec, scope, leaf[k].whole);
    }
    return leaf[id].whole;
  }

  // Keeps the first.
  constexpr void refuse(problem p, op_code op, const int* in, int inputs) {
    if (refused) return;
    if (stored)
      for (int k = 0; k < inputs; ++k)
        if (in[k] >= 0) gathered(in[k]);
    refused = {p, op, current_scope, node_count};
    for (int k = 0; k < inputs; ++k)
      if (in[k] >= 0) refused.in[refused.inputs++] = stored ? gathered(in[k]) : in[k];
  }
  // What depends on values, not types.
  constexpr void refuse_value(const finding& f, op_code op) {
    if (error) return;
    error = f;
    error.said = true;
    if (refused) return;
    refused = {f.what, op, current_scope, node_count};
    refused.by_value = true;
  }
  // The same of a node that is there.
  constexpr void refuse_node(problem p, int id) {
    if (error) return;
    error = {p, id};
    error.said = true;
    if (refused || id >= node_capacity) return;
    refused = {p, nodes[id].op, nodes[id].scope, id};
    refused.by_value = true;
  }

  // Makes n an application of `o`.
  constexpr void set_operation(node& n, op_code op) { n.op = op; }
  constexpr void set_operation(node& n, const custom_operation* o) {
    int i = 0;
    while (i < custom_count && !is_same_operation(customs[i], o)) ++i;
    n.op = op_code::custom;
    n.a.v[custom_word] = i;
    if (i < custom_count) return;
    for (i = 0; i < custom_count; ++i)
      if (is_same_name(customs[i]->name, o->name)) refuse_value({problem::custom_name_twice}, op_code::custom);
    if (i < max_custom) {
      customs[custom_count++] = o;
      return;
    }
    n.a.v[custom_word] = 0;
    refuse_value({problem::custom_too_many, -1, -1, -1, max_custom + 1, max_custom}, op_code::custom);
  }

  constexpr int append(const node& n) {
    if (node_count < node_capacity) nodes[node_count] = n;
    else if (bounded) {
      if (!error) error = {problem::adjoint_nodes};
      return node_capacity - 1;
    }
    return node_count++;
  }
  // Appends an application of `op`, an op_code or the address of a custom operation, to the nodes given; -1 is none.
  template <class Op>
  constexpr int emit(Op op, const op_attr& a, double f, int spec_id, int scope, int i0 = -1, int i1 = -1, int i2 = -1,
                     int i3 = -1, int i4 = -1) {
    node n = empty_node;
    n.a = a;
    set_operation(n, op);
    n.f = f;
    n.spec = spec_id;
    n.scope = scope;
    n.in[0] = i0;
    n.in[1] = i1;
    n.in[2] = i2;
    n.in[3] = i3;
    n.in[4] = i4;
    n.inputs = (i0 >= 0 ? 1 : 0) + (i1 >= 0 ? 1 : 0) + (i2 >= 0 ? 1 : 0) + (i3 >= 0 ? 1 : 0) + (i4 >= 0 ? 1 : 0);
    return append(n);
  }

  constexpr int enter(const char* name, int index) {
    if (scope_count < scope_capacity) scopes[scope_count] = {name, index, current_scope};
    return scope_count++;
  }
};

}  // namespace shardwise::inline v0_1

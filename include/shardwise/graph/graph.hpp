// SPDX-License-Identifier: Apache-2.0
// A graph is a value: nodes in program order with their operands before them, and the table of the specs they have.
#pragma once

#include <cstdint>
#include <type_traits>

#include <shardwise/graph/expression.hpp>
#include <shardwise/operations/all.hpp>
#include <shardwise/propagation/transition.hpp>
#include <shardwise/support/hash.hpp>
#include <shardwise/support/same_object.hpp>

namespace shardwise::inline v0_1 {

// One operation and its result; an operation with several results: see item_of. `spec` indexes the graph's spec table, `scope` its
// module tree (-1: no module).
// No initialisers: constructing the elements of an array costs nvcc four kilobytes each, assigning them nothing. A node
// begins as a copy of `empty_node`.
struct node {
  op_code op;
  std::int32_t inputs;
  std::int32_t in[max_inputs];
  std::int32_t spec;
  std::int32_t scope;
  std::int32_t expression;  // in the graph's table: what becomes of the result before it is stored, -1: nothing
  double f;                 // the operation's real parameter: factor, epsilon, probability
  op_attr a;
};

inline constexpr node empty_node{op_code::input, 0, {-1, -1, -1, -1, -1, -1, -1, -1}, -1, -1, -1, 0, {}};

struct checkpoint_policy;  // graph/checkpoint.hpp

// A module instance: its name under its parent; list elements have an index and no name. What lies in a checkpoint has a scope of
// its own for each call, of the same name and parent: see graph/checkpoint.hpp.
struct scope {
  static constexpr std::int32_t uncalled = -2;

  const char* name = nullptr;
  std::int32_t index = -1;
  std::int32_t parent = -1;
  std::int32_t region = uncalled;                 // the innermost checkpointed call that it lies in, itself not; -1: in none
  std::int32_t replay = -1;                       // the call that its nodes compute again, -1: none
  const checkpoint_policy* checkpoint = nullptr;  // of a checkpointed call: what is kept of it
  std::int32_t turn = 0;                          // of the batch's piece that its nodes compute (autodiff/turns.hpp)
};

// One rank's blocks, densely stored row-major: the result's first, then the operands'.
struct opaque_block {
  void* data = nullptr;
  std::int64_t size = 0;  // in elements
};

// What an opaque node runs: see graph/functions/opaque.hpp.
using opaque_function = void (*)(const opaque_block* blocks);
inline constexpr int max_opaque = 8;

namespace autodiff {
struct adjoint_rule;  // graph/tape.hpp
}

// A user's own operation: what the library's own records say, its name, and what differentiation makes of it. How one is
// written: graph/custom.hpp.
struct custom_operation {
  stated<const char*> name;
  stated<int> operands;
  operation record;
  stated<const autodiff::adjoint_rule*> adjoint;
};
inline constexpr int max_custom = 16;  // distinct ones of a program

constexpr bool is_same_name(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}
// Law: a name of a graph belongs to one node. Nodes are called swiglu, swiglu_1, swiglu_2, ..., so an operation's name is a word of
// letters, digits and underscores that does not end like a number's, and is no operation's or collective's of the library.
constexpr bool is_custom_name(const char* name) {
  if (name == nullptr) return false;
  const char* number = nullptr;  // of digits alone since an underscore
  for (const char* c = name; *c != '\0'; ++c) {
    const bool digit = *c >= '0' && *c <= '9';
    if (!digit && !(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && *c != '_') return false;
    if (c == name && digit) return false;
    if (*c == '_') number = c;
    else if (!digit) number = nullptr;
  }
  if (*name == '\0' || number != nullptr) return false;
  for (int op = 0; op < static_cast<int>(op_code::count); ++op)
    if (is_same_name(name, name_of(static_cast<op_code>(op)))) return false;
  for (const transition t :
       {transition::all_reduce, transition::reduce_scatter, transition::all_gather, transition::all_to_all})
    if (is_same_name(name, name_of(t))) return false;
  return true;
}

// Law: an operation is the constant that holds it, whatever its name.
constexpr bool is_same_operation(const custom_operation* a, const custom_operation* b) { return is_same_object(a, b); }

// Its kernel has one element type: that of the operands, but for indices, and of the result; of several results the first has
// it, and further ones may be int32 instead. Those that the record names wide are float where that has two bytes.
constexpr bool is_of_one_type(const operation& o, const spec* in, int n, const spec& out, int result = 0) {
  if (result > 0 && out.type == dtype::i32) return true;
  const wide_values wide = o.wide;
  for (int k = 0; k < n; ++k)
    if (k != o.indices && (wide.operands >> k & 1U) == 0 && wide.result(result, in[k].type) != out.type) return false;
  return true;
}

constexpr const operation& operation_of(const custom_operation* o) { return o->record; }
// The number of an operation given as a template argument, and of a custom one the number that all of them have.
constexpr op_code code_of(op_code op) { return op; }
constexpr op_code code_of(const custom_operation*) { return op_code::custom; }

constexpr std::uint64_t hash_of(const spec& s) {
  std::uint64_t h = hash_seed;
  auto mix = [&h](std::uint64_t v) { h = hash_mixed(h, v); };
  for (int d = 0; d < s.rank; ++d) {
    mix(static_cast<std::uint64_t>(s.extent[d]));
    mix(static_cast<std::uint64_t>(s.stride[d]));
  }
  for (int a = 0; a < s.axes; ++a) {
    mix(static_cast<std::uint64_t>(pack(s.place[a])));
    mix(static_cast<std::uint64_t>(s.axis_size[a]));
  }
  mix(static_cast<std::uint64_t>(s.offset));
  mix(static_cast<std::uint64_t>(s.rank) | static_cast<std::uint64_t>(s.type) << 8 |
      static_cast<std::uint64_t>(s.dyn) << 16 | static_cast<std::uint64_t>(s.device) << 48);
  return h;
}

// A finding about a graph. Where it was: the module, and the node's name as graph/text/text.hpp gives it, by the number of its
// base name and its own among those; base -1: of no node. Names outlive passes, which number nodes anew.
struct graph_finding : finding {
  std::int32_t scope = -1;
  std::int32_t base = -1;
  std::int32_t number = 0;
  bool said = false;  // the trace says it

  constexpr graph_finding() = default;
  constexpr graph_finding(const finding& f) : finding(f) {}
  constexpr graph_finding(problem p, int operand = -1, int dim = -1, int axis = -1, long long have = 0, long long want = 0)
      : finding{p, operand, dim, axis, have, want} {}
};

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

// A parameter that is stored in shards and read whole, and the others of its group: the first of them to be read gathers all.
struct stored_shard {
  std::int32_t spec = -1;  // of the whole; -1: this leaf is read as it is stored
  std::int32_t axis = 0;
  std::int32_t scope = -1;  // of the module whose group it is in
  std::int32_t first = -1;  // the group's first leaf
  std::int32_t next = -1;   // the one after this
  std::int32_t whole = -1;  // the node that gathers it, once there is one
  std::int64_t unshard = 0;
  std::int32_t inner = -1;  // the axis that is gathered last, where there are two
  std::int32_t part = -1;   // the spec before that
  std::int64_t unshard_part = 0;
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
  opaque_function* functions = nullptr;
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

  // The node that has the whole of leaf `id`: at the first use of any parameter of its group all of them are gathered, side by
  // side, in the order in which the model declares them and in the name of the group's module.
  constexpr int gathered(int id) {
    if (id >= stored->count) return id;
    const stored_shard* const leaf = stored->leaf;
    if (leaf[id].spec < 0) return id;
    if (leaf[id].whole >= 0) return leaf[id].whole;
    const bool twice = leaf[id].inner >= 0;
    const auto gather = [&](int k, int from, int axis, int to, std::int64_t unshard) {
      const op_attr a = attributes<redistribute_attributes>(axis, pack(reduced_value()), unshard);
      stored->leaf[k].whole = emit(op_code::redistribute, a, 0, to, leaf[k].scope, from);
    };
    for (int k = leaf[id].first; k >= 0; k = leaf[k].next)
      gather(k, k, leaf[k].axis, twice ? leaf[k].part : leaf[k].spec, twice ? leaf[k].unshard_part : leaf[k].unshard);
    for (int k = leaf[id].first; twice && k >= 0; k = leaf[k].next)
      gather(k, leaf[k].whole, leaf[k].inner, leaf[k].spec, leaf[k].unshard);
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

template <int Nodes, int Specs, int Scopes = 1, int Outputs = 8>
struct graph {
  static constexpr int node_capacity = Nodes, spec_capacity = Specs, scope_capacity = Scopes, output_capacity = Outputs;

  node nodes[Nodes];
  spec specs[Specs]{};
  std::uint64_t hashes[Specs]{};
  scope scopes[Scopes]{};
  int node_count = 0;
  int spec_count = 0;
  int scope_count = 0;
  int sites = 0;
  int function_count = 0;
  int custom_count = 0;
  int expression_count = 0;
  opaque_function functions[max_opaque]{};
  const custom_operation* customs[max_custom]{};
  expression expressions[max_expressions]{};
  int outputs[Outputs];
  int output_count = 0;
  graph_finding error{};

  constexpr graph() {
    for (node& n : nodes) n = empty_node;
    for (int& o : outputs) o = -1;
  }

  // Nodes and outputs as they come: whoever makes such a graph assigns all of them.
  struct unfilled {};
  constexpr explicit graph(unfilled) {}

  constexpr int size() const { return node_count; }
  constexpr const spec& spec_of(int id) const { return specs[nodes[id].spec]; }

  // A builder that goes on where this graph ends; `finish` brings the counts back.
  constexpr builder edit() {
    builder b;
    b.nodes = nodes;
    b.specs = specs;
    b.hashes = hashes;
    b.scopes = scopes;
    b.node_capacity = Nodes;
    b.spec_capacity = Specs;
    b.scope_capacity = Scopes;
    b.node_count = node_count;
    b.spec_count = spec_count;
    b.scope_count = scope_count;
    b.sites = sites;
    b.functions = functions;
    b.function_count = function_count;
    b.customs = customs;
    b.custom_count = custom_count;
    b.error = error;
    return b;
  }
  constexpr void finish(const builder& b) {
    node_count = b.node_count;
    spec_count = b.spec_count;
    scope_count = b.scope_count;
    sites = b.sites;
    function_count = b.function_count;
    custom_count = b.custom_count;
    error = b.error;
  }
};

// A source's graph type: its capacities cost nothing to read. What a constant reads from another, large constant it
// reads through pointers to its arrays, or as a function's const& parameter: of a local reference every element costs
// nvcc four kilobytes, of a local copy as much, and so does every element of a large value that a function returns.
template <class Source>
using graph_type_of = std::remove_cvref_t<decltype(Source::value)>;

// The type of a graph made out of one of type Graph: the same modules and outputs, other nodes and specs.
template <class Graph, int Nodes, int Specs, int Scopes = Graph::scope_capacity>
using resized = graph<Nodes, Specs, Scopes, Graph::output_capacity>;

template <class To, class From>
constexpr void copy_functions(To& to, const From& from) {
  to.function_count = from.function_count;
  for (int i = 0; i < from.function_count; ++i) to.functions[i] = from.functions[i];
  to.custom_count = from.custom_count;
  for (int i = 0; i < from.custom_count; ++i) to.customs[i] = from.customs[i];
  to.expression_count = from.expression_count;
  for (int i = 0; i < from.expression_count; ++i) to.expressions[i] = from.expressions[i];
}

// The same graph in other capacities, which must suffice; `r` is new. In place: a copy of a large value costs memory.
template <class To, class From>
constexpr void copy_into(To& r, const From& g) {
  const int count = g.node_count;
  for (int i = 0; i < count; ++i) r.nodes[i] = g.nodes[i];
  for (int i = 0; i < g.spec_count; ++i) {
    r.specs[i] = g.specs[i];
    r.hashes[i] = g.hashes[i];
  }
  for (int i = 0; i < g.scope_count; ++i) r.scopes[i] = g.scopes[i];
  r.node_count = g.node_count;
  r.spec_count = g.spec_count;
  r.scope_count = g.scope_count;
  r.sites = g.sites;
  copy_functions(r, g);
  r.output_count = g.output_count;
  for (int i = 0; i < g.output_count; ++i) r.outputs[i] = g.outputs[i];
  r.error = g.error;
}

// Whether a node applies a custom operation, one that its graph has.
template <class Graph>
constexpr bool is_custom(const Graph& g, const node& n) {
  return n.op == op_code::custom && n.a.v[custom_word] >= 0 && n.a.v[custom_word] < g.custom_count;
}
// The custom operation that a node applies; null for the library's own, and where a broken graph names none. `g` is the node's
// graph, or a builder of it.
template <class Graph>
constexpr const custom_operation* custom_of(const Graph& g, const node& n) {
  return is_custom(g, n) ? g.customs[n.a.v[custom_word]] : nullptr;
}
// The element type of a node's kernel: of its operands and results that of two bytes, if there is one (wide_values); else the
// result's, of positions and comparisons the operand's.
template <class Graph>
constexpr dtype kernel_type(const Graph& g, const node& n) {
  const dtype own = g.specs[makes_indices(n.op) ? g.nodes[n.in[0]].spec : n.spec].type;
  if (own != dtype::f32 || n.op == op_code::cast) return own;
  for (int k = 0; k < n.inputs; ++k)
    if (const dtype t = g.specs[g.nodes[n.in[k]].spec].type; is_low_precision(t)) return t;
  return own;
}
template <class Graph>
constexpr bool has_low_precision(const Graph& g) {
  for (int i = 0; i < g.spec_count; ++i)
    if (is_low_precision(g.specs[i].type)) return true;
  return false;
}
// The record of a node's operation.
template <class Graph>
constexpr const operation& record_of(const Graph& g, const node& n) {
  return is_custom(g, n) ? g.customs[n.a.v[custom_word]]->record : operation_of(n.op);
}
// The operands that a node's kernel writes into, bit by bit: those that its record names, and rooms.
template <class Graph>
constexpr std::uint32_t written_operands(const Graph& g, const node& n) {
  std::uint32_t all = record_of(g, n).writes.value(n.a);
  for (int k = 0; k < n.inputs; ++k)
    if (g.nodes[n.in[k]].op == op_code::room) all |= std::uint32_t{1} << k;
  return all;
}

// --- several results ----------------------------------------------------------------------------------------------------------

// A node of an operation with several results is no tensor: it has no storage, and its spec is that of its first result, for
// its mesh, its type and its place in texts. Law: `getitem` nodes alone read it, each another one of its results (verify), and
// those are ordinary values, of their own spec and storage. Its kernel writes them where the node stands; a result that no
// node names is not wanted, and is not written.
template <class Graph>
constexpr int result_count(const Graph& g, const node& n) {
  return is_custom(g, n) ? g.customs[n.a.v[custom_word]]->record.results.value : 1;
}
template <class Graph>
constexpr bool has_results(const Graph& g, int i) {
  return result_count(g, g.nodes[i]) > 1;
}
// The node of result k of node i among nodes [i + 1, end), -1: it is not wanted. Price: looks at all of them; a trace and most
// passes keep them together.
template <class Graph>
constexpr int item_of(const Graph& g, int i, int k, int end) {
  for (int j = i + 1; j < end; ++j)
    if (g.nodes[j].op == op_code::getitem && g.nodes[j].in[0] == i &&
        attributes_of<getitem_attributes>(g.nodes[j].a).result == k)
      return j;
  return -1;
}
// A node that is result k of node `of`.
constexpr node item_node(int of, int k, int spec_id, int scope) {
  node n = empty_node;
  n.op = op_code::getitem;
  n.inputs = 1;
  n.in[0] = of;
  n.a = attributes<getitem_attributes>(k);
  n.spec = spec_id;
  n.scope = scope;
  return n;
}
// All results of all nodes: first[i] is a result of node i, next[j] another one after it; -1: no more.
template <int Nodes>
struct item_lists {
  int first[Nodes > 0 ? Nodes : 1];
  int next[Nodes > 0 ? Nodes : 1];

  template <class Graph>
  constexpr void find(const Graph& g) {
    for (int i = 0; i < (Nodes > 0 ? Nodes : 1); ++i) first[i] = next[i] = -1;
    for (int i = g.node_count - 1; i >= 0; --i) {
      const node& n = g.nodes[i];
      if (n.op != op_code::getitem) continue;
      next[i] = first[n.in[0]];
      first[n.in[0]] = i;
    }
  }
};

// What a node's operation is called.
template <class Graph>
constexpr const char* name_of(const Graph& g, const node& n) {
  return is_custom(g, n) ? g.customs[n.a.v[custom_word]]->name.value : name_of(n.op);
}

// A parameter that the plan freezes: nothing is differentiated by it.
constexpr bool is_frozen_parameter(const node& n) {
  return n.op == op_code::param && attributes_of<parameter_attributes>(n.a).group < 0;
}

// Whether a node's result is its first operand's storage seen differently.
constexpr bool is_view(const node& n, const spec& in, const spec& out) {
  const operation_kind kind = kind_of(n.op);
  if (kind != operation_kind::moving) return kind == operation_kind::view;
  const int a = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
  return transition_of(in.place[a], out.place[a], in.axis_size[a]) == transition::none;
}

// What becomes of a parameter that a node makes whole for the group that stores it in shards; none: it makes none whole.
constexpr unsharding unsharding_of(const node& n) {
  if (n.op != op_code::redistribute) return unsharding::none;
  return static_cast<unsharding>(attributes_of<redistribute_attributes>(n.a).unshard);
}
constexpr bool gathers_parameter(const node& n) {
  return n.op == op_code::redistribute && attributes_of<redistribute_attributes>(n.a).unshard != 0;
}
// Whether n gathers a parameter of the group whose parameter `other` gathers, over the same axis.
constexpr bool gathers_beside(const node& n, const node& other) {
  return gathers_parameter(n) && n.scope == other.scope &&
         attributes_of<redistribute_attributes>(n.a).axis == attributes_of<redistribute_attributes>(other.a).axis;
}

namespace detail {

// What node i moves between ranks, none if it is no redistribution.
template <class Graph>
constexpr transition transition_at(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.op != op_code::redistribute || n.inputs == 0) return transition::none;
  const int a = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
  const spec& from = g.specs[g.nodes[n.in[0]].spec];
  return transition_of(from.place[a], g.specs[n.spec].place[a], from.axis_size[a]);
}

}  // namespace detail

// Whether an operand of an opaque function is placed as its result is: ranks that have the same of one have it of the other.
constexpr bool placed_as_one(const spec& result, const spec& operand) {
  bool same = result.axes == operand.axes;
  for (int a = 0; same && a < result.axes; ++a) {
    const placement &p = result.place[a], &q = operand.place[a];
    same = p == q || (p.is_whole() && q.is_whole());
  }
  return same;
}

// Whether a node gives an input the storage of another tensor.
constexpr bool sets_storage(const node& n) {
  return n.op == op_code::copy_ && attributes_of<copy_attributes>(n.a).sets != 0;
}
// Whether a leaf is storage that an input has behind a run: which input's, -1: it is none.
constexpr std::int64_t exchanged_with(const node& n) {
  if (n.op != op_code::state || attributes_of<leaf_attributes>(n.a).which != 4) return -1;
  return attributes_of<leaf_attributes>(n.a).parameter;
}

// Whether a graph writes into values in place, so that what a node reads depends on where it stands: functionalise ends it.
template <class Graph>
constexpr int first_mutation(const Graph& g) {
  const int count = g.node_count;
  for (int i = 0; i < count; ++i)
    if (g.nodes[i].op == op_code::copy_) return i;
  return -1;
}
template <class Graph>
constexpr bool has_mutation(const Graph& g) {
  return first_mutation(g) >= 0;
}

}  // namespace shardwise::inline v0_1

// SPDX-License-Identifier: Apache-2.0
// A graph is a value: nodes in program order with their operands before them, and the table of the specs they have.
#pragma once

#include <shardwise/graph/builder.hpp>

namespace shardwise::inline v0_1 {

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
  const opaque_operation* functions[max_opaque]{};
  const custom_operation* customs[max_custom]{};
  expression expressions[max_expressions]{};
  int outputs[Outputs];
  int output_count = 0;
  graph_finding error{};

  constexpr graph() {
    for (node& n : nodes) n = empty_node;
    for (int& o : outputs) o = -1;
  }

  // Nodes and outputs as they come: whoever makes such a graph assigns all of them, a constant else does not compile. What a
  // constructor assigns costs nvcc's front end five kilobytes a node more than what is assigned to a graph that is there.
  struct unfilled {};
  constexpr explicit graph(unfilled) {}

  // The nodes and outputs from these on.
  constexpr void fill(int first_node = 0, int first_output = 0) {
    for (int i = first_node; i < Nodes; ++i) nodes[i] = empty_node;
    for (int k = first_output; k < Outputs; ++k) outputs[k] = -1;
  }

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

// What begins a graph that is written anew: all of `g` but its nodes and outputs. `r` is new, and its capacities suffice.
template <class To, class From>
constexpr void copy_frame(To& r, const From& g) {
  for (int i = 0; i < g.spec_count; ++i) {
    r.specs[i] = g.specs[i];
    r.hashes[i] = g.hashes[i];
  }
  for (int i = 0; i < g.scope_count; ++i) r.scopes[i] = g.scopes[i];
  r.spec_count = g.spec_count;
  r.scope_count = g.scope_count;
  r.sites = g.sites;
  copy_functions(r, g);
  r.error = g.error;
}
// The same of one whose nodes come one by one, in a state that passes keep.
template <class To, class From>
constexpr void begin_anew(To& r, const From& g) {
  r.fill();
  copy_frame(r, g);
}
// And what ends it: the outputs of `g`, whose node i is `to[i]` now.
template <class To, class From, class Map>
constexpr void copy_outputs(To& r, const From& g, const Map& to) {
  r.output_count = g.output_count;
  for (int k = 0; k < g.output_count; ++k) r.outputs[k] = to[g.outputs[k]];
}

// The same graph in other capacities, which must suffice; `r` is new. In place: a copy of a large value costs memory.
template <class To, class From>
constexpr void copy_into(To& r, const From& g) {
  const int count = g.node_count;
  for (int i = 0; i < count; ++i) r.nodes[i] = g.nodes[i];
  r.node_count = g.node_count;
  copy_frame(r, g);
  r.output_count = g.output_count;
  for (int i = 0; i < g.output_count; ++i) r.outputs[i] = g.outputs[i];
  r.fill(count, g.output_count);
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
// Whether a node's result may be stored channels-last, and its operands with it: its kernel goes by their strides. A user's own
// pointwise operation may have a kernel that does not.
template <class Graph>
constexpr bool may_be_strided(const Graph& g, const node& n) {
  const operation& o = record_of(g, n);
  return o.strided && (o.kind == operation_kind::pointwise) != is_custom(g, n);
}
// The operands that a node's kernel writes into, bit by bit: those that its record names, and rooms.
template <class Graph>
constexpr std::uint32_t written_operands(const Graph& g, const node& n) {
  std::uint32_t all =
      is_custom(g, n) ? g.customs[n.a.v[custom_word]]->record.writes.value(n.a) : traits_of(n.op).writes(n.a);
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

// The element type of the cotangent of a node's result: the result's own, but of a parameter's use, in which it is summed up.
constexpr dtype cotangent_type(const node& n, dtype own) {
  const std::int64_t said = n.op == op_code::cast           ? attributes_of<cast_attributes>(n.a).cotangent
                            : n.op == op_code::redistribute ? attributes_of<redistribute_attributes>(n.a).cotangent
                                                            : 0;
  return said == 0 ? own : static_cast<dtype>(said - 1);
}
// Whether a node casts a parameter for all that reads it.
constexpr bool casts_parameter(const node& n) {
  return n.op == op_code::cast && attributes_of<cast_attributes>(n.a).cotangent != 0;
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

// Whether node i gathers, between ranks, a parameter of a group that frees it.
template <class Graph>
constexpr bool gathers_freed(const Graph& g, int i) {
  return unsharding_of(g.nodes[i]) == unsharding::freed && communicates(detail::transition_at(g, i));
}

// Whether an operand of an opaque function suits its result's placements: ranks that have the same of the result have the same of
// the operand.
constexpr bool placed_as_one(const spec& result, const spec& operand) {
  bool same = result.axes == operand.axes;
  for (int a = 0; same && a < result.axes; ++a) {
    const placement &p = result.place[a], &q = operand.place[a];
    same = p == q || (q.is_whole() && (p.is_whole() || p.is_shard()));
  }
  return same;
}
// Law: what an opaque function's adjoint computes of a rank's block of the result's cotangent `dy` is, on an axis where the operand is
// the same shard, the operand's cotangent's shard; where a whole operand met shards, or dy is partial, a rank's summand of it; else
// all of it.
constexpr placement opaque_cotangent_place(const placement& dy, const placement& operand) {
  return dy.is_shard() && operand.is_whole() ? partial_value() : dy.is_whole() ? replicate_value() : dy;
}
// Whether an opaque node has the extents and placements that its operands give it.
template <class Graph>
constexpr bool is_opaque_placed(const Graph& g, const node& n) {
  const auto k = static_cast<int>(attributes_of<opaque_attributes>(n.a).cotangent);
  const spec& out = g.specs[n.spec];
  const int operands = n.inputs - (k > 0 ? 1 : 0);
  if (operands < 1 || k > operands) return false;
  const auto in = [&](int j) -> const spec& { return g.specs[g.nodes[n.in[j]].spec]; };
  if (!same_blocks(in(k > 0 ? k - 1 : 0), out)) return false;
  for (int j = 0; k == 0 && j < operands; ++j)
    if (!placed_as_one(out, in(j))) return false;
  for (int a = 0; k > 0 && a < out.axes; ++a)
    if (!(out.place[a] == opaque_cotangent_place(in(operands).place[a], in(k - 1).place[a]))) return false;
  return true;
}
// What an opaque node runs.
template <class Graph>
constexpr opaque_function opaque_function_of(const Graph& g, const node& n) {
  const auto a = attributes_of<opaque_attributes>(n.a);
  const opaque_operation& f = *g.functions[a.function];
  return a.cotangent == 0 ? f.call : f.cotangent[a.cotangent - 1];
}

// Whether a node gives an input the storage of another tensor.
constexpr bool sets_storage(const node& n) {
  return n.op == op_code::copy_ && attributes_of<copy_attributes>(n.a).sets != 0;
}
// Whether a leaf is storage that an input has behind a run: which input's, -1: it is none.
constexpr std::int64_t exchanged_with(const node& n) {
  if (n.op != op_code::state || attributes_of<leaf_attributes>(n.a).which != spare_storage) return -1;
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

// SPDX-License-Identifier: Apache-2.0
// What a graph is made of: nodes, scopes of modules, users' operations, and findings about them.
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

// What opaque nodes run, as graph/functions/opaque.hpp makes it of a user's function: the function, and for each operand what
// computes its cotangent, from blocks of the operands and then of the result's cotangent.
using opaque_function = void (*)(const opaque_block* blocks);
struct opaque_operation {
  opaque_function call;
  opaque_function cotangent[max_inputs];
  std::uint32_t adjoint;  // operands whose cotangents the user gives, bit by bit; the other entries are never called
};
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
  for (const transition t : collectives)
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
  constexpr graph_finding(problem p, int of_operand = -1, int at_dim = -1, int on_axis = -1, long long given = 0,
                          long long required = 0)
      : finding{p, of_operand, at_dim, on_axis, given, required} {}
};

}  // namespace shardwise::inline v0_1
